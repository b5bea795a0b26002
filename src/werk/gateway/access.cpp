#include "werk/gateway/access.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "werk/base/digest.hpp"
#include "werk/base/text.hpp"

namespace werk::gateway {
namespace {

// "localhost:8080" -> "localhost", "[::1]:8080" -> "[::1]"; empty where something else than a port
// follows the name.
std::string_view without_port(std::string_view host) {
  std::size_t end = std::min(host.find(':'), host.size());
  if (host.starts_with('[')) {
    const std::size_t bracket = host.find(']');
    if (bracket == std::string_view::npos) return {};
    end = bracket + 1;
  }
  const std::string_view port = host.substr(end);
  const bool is_port = port.empty() || (port.starts_with(':') &&
                                        port.find_first_not_of("0123456789", 1) == port.npos);
  return is_port ? host.substr(0, end) : std::string_view();
}

bool is_loopback_name(std::string_view host) {
  if (equals_ignoring_case(host, "localhost") || host == "[::1]") return true;
  const bool digits = host.find_first_not_of("0123456789.") == std::string_view::npos;
  return digits && host.starts_with("127.");
}

}  // namespace

Status Access::check_host(const http::Request& request) const {
  if (settings_.host_check == HostCheck::off) return {};
  const std::optional<std::string_view> field = request.headers.find("Host");
  if (!field && request.version == 10) return {};  // a browser always sends one
  const std::string_view sent = trim(field.value_or(""));
  const std::string_view name = without_port(sent);
  if (is_served(name)) return check_origin(request);
  const std::string_view host = name.empty() ? sent : name;
  return fail(ErrorCode::forbidden, Origin::client,
              fmt::format("the Host \"{}\" is not served without a key; start the node with "
                          "--allow-host {} or with a key",
                          printable(host.substr(0, 100)), printable(host.substr(0, 100))));
}

// A browser lets any page send a plain POST here; the page can't read the answer, but the work
// would be done.
Status Access::check_origin(const http::Request& request) const {
  const std::string_view origin = request.headers.find("Origin").value_or("");
  const bool is_page = origin.starts_with("http://") || origin.starts_with("https://");
  if (request.method != "POST" || !is_page || page_origin(request)) return {};
  return fail(ErrorCode::forbidden, Origin::client,
              fmt::format("pages of {} may not call this node without a key; start it with "
                          "--allow-host NAME or with a key",
                          printable(origin.substr(0, 100))));
}

Status Access::check_key(const http::Request& request) const {
  if (settings_.keys.empty()) return {};
  constexpr std::string_view kBearer = "bearer ";
  const auto authorization = request.headers.find("Authorization");
  if (authorization && equals_ignoring_case(authorization->substr(0, kBearer.size()), kBearer)) {
    if (is_known(trim(authorization->substr(kBearer.size())))) return {};
  }
  const auto api_key = request.headers.find("X-API-Key");
  if (api_key && is_known(trim(*api_key))) return {};
  const bool sent = authorization || api_key;
  return fail(ErrorCode::unauthorized, Origin::client,
              sent ? "the key is not one of this node's"
                   : "this node needs a key: send Authorization: Bearer KEY or X-API-Key: KEY");
}

std::optional<std::string_view> Access::page_origin(const http::Request& request) const {
  const std::optional<std::string_view> origin = request.headers.find("Origin");
  if (!origin) return std::nullopt;
  std::string_view host = *origin;
  for (const std::string_view scheme : {"http://", "https://"}) {
    if (!origin->starts_with(scheme)) continue;
    host.remove_prefix(scheme.size());
    if (is_served(without_port(host))) return origin;
  }
  return std::nullopt;
}

bool Access::is_served(std::string_view host) const {
  if (host.ends_with('.')) host.remove_suffix(1);
  if (is_loopback_name(host)) return true;
  return std::ranges::any_of(settings_.allowed_hosts, [&](const std::string& name) {
    return equals_ignoring_case(name, host);
  });
}

bool Access::is_known(std::string_view key) const {
  // Every key is compared, so that the time tells nothing about which one nearly fitted.
  bool known = false;
  for (const std::string& one : settings_.keys) known = equals_in_constant_time(one, key) || known;
  return known;
}

}  // namespace werk::gateway
