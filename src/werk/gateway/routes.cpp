#include "werk/gateway/routes.hpp"

#include <fmt/format.h>

#include <array>
#include <vector>

#include "werk/base/text.hpp"

namespace werk::gateway {
namespace {

struct Row {
  std::string_view path;
  RouteId id;
  std::string_view method;
  KeyRule key;
};

constexpr std::array<Row, 13> kRows = {{
    {"/", RouteId::root, "GET", KeyRule::open},
    {"/health", RouteId::health, "GET", KeyRule::open},
    {"/livez", RouteId::livez, "GET", KeyRule::open},
    {"/readyz", RouteId::readyz, "GET", KeyRule::open},
    {"/v1/models", RouteId::models, "GET", KeyRule::needed},
    {"/v1/chat/completions", RouteId::chat_completions, "POST", KeyRule::needed},
    {"/v1/messages", RouteId::messages, "POST", KeyRule::needed},
    {"/v1/messages/count_tokens", RouteId::count_tokens, "POST", KeyRule::needed},
    {"/werk/v1/observability", RouteId::observability, "GET", KeyRule::needed},
    {"/werk/v1/events", RouteId::events, "GET", KeyRule::needed},
    {"/metrics", RouteId::metrics, "GET", KeyRule::needed},
    {"/werk/v1/stop", RouteId::stop, "POST", KeyRule::needed},
    {"/werk/v1/logs", RouteId::logs, "GET", KeyRule::needed},
}};
// What is done to a model: the last segment of the path, behind an id that may hold slashes.
constexpr std::string_view kControlPrefix = "/werk/v1/models/";
constexpr std::array<Row, 4> kModelActs = {{
    {"/load", RouteId::load_model, "POST", KeyRule::needed},
    {"/unload", RouteId::unload_model, "POST", KeyRule::needed},
    {"/pin", RouteId::pin_model, "POST", KeyRule::needed},
    {"/unpin", RouteId::unpin_model, "POST", KeyRule::needed},
}};
constexpr std::string_view kLogsPrefix = "/werk/v1/logs/";
constexpr std::string_view kModelPrefix = "/v1/models/";

int hex_value(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

// Single slashes, none at the end, the version prefix once: how most mistyped base URLs become
// right.
std::string tidied(std::string_view path) {
  std::string out;
  for (const char c : path) {
    if (c == '/' && out.ends_with('/')) continue;
    out.push_back(c);
  }
  while (out.size() > 1 && out.ends_with('/')) out.pop_back();
  while (out.starts_with("/v1/v1/")) out.erase(0, 3);
  return out;
}

std::string likely_route(std::string_view path) {
  const std::string tidy = tidied(path);
  std::vector<std::string> known;
  for (const Row& row : kRows) {
    if (row.path == tidy || row.path == "/v1" + tidy) return std::string(row.path);
    known.emplace_back(row.path);
  }
  // A route given twice or with a prefix before it still ends in the right one.
  for (const Row& row : kRows) {
    if (row.path.size() > 1 && tidy.ends_with(row.path)) return std::string(row.path);
  }
  const std::vector<std::string> near = near_names(tidy, known, 1);
  return near.empty() ? std::string() : near.front();
}

}  // namespace

std::string percent_decoded(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '%' && i + 2 < text.size()) {
      const int high = hex_value(text[i + 1]);
      const int low = hex_value(text[i + 2]);
      if (high >= 0 && low >= 0) {
        out.push_back(static_cast<char>(high * 16 + low));
        i += 2;
        continue;
      }
    }
    out.push_back(text[i]);
  }
  return out;
}

Result<FoundRoute> find_route(std::string_view path) {
  for (const Row& row : kRows) {
    if (row.path == path) return FoundRoute{row.id, row.method, row.key, {}};
  }
  if (path.starts_with(kModelPrefix) && path.size() > kModelPrefix.size()) {
    return FoundRoute{RouteId::model, "GET", KeyRule::needed,
                      percent_decoded(path.substr(kModelPrefix.size()))};
  }
  if (path.starts_with(kLogsPrefix) && path.size() > kLogsPrefix.size()) {
    return FoundRoute{RouteId::logs, "GET", KeyRule::needed,
                      percent_decoded(path.substr(kLogsPrefix.size()))};
  }
  for (const Row& act : kModelActs) {
    const bool fits = path.starts_with(kControlPrefix) && path.ends_with(act.path) &&
                      path.size() > kControlPrefix.size() + act.path.size();
    if (!fits) continue;
    const std::string_view id = path.substr(kControlPrefix.size());
    return FoundRoute{act.id, act.method, act.key,
                      percent_decoded(id.substr(0, id.size() - act.path.size()))};
  }
  std::string message = fmt::format("there is no route {}", printable(path.substr(0, 200)));
  const std::string likely = likely_route(path);
  if (!likely.empty()) message += fmt::format("; did you mean {}?", likely);
  return fail(ErrorCode::route_not_found, Origin::client, std::move(message));
}

std::string_view allowed_methods(const FoundRoute& route) {
  return route.method == "POST" ? "POST, OPTIONS" : "GET, HEAD, OPTIONS";
}

}  // namespace werk::gateway
