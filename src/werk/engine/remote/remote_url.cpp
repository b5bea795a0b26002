#include "werk/engine/remote/remote_url.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <optional>

#include "werk/base/text.hpp"

namespace werk::engine::remote {
namespace {

constexpr std::uint16_t kHttpPort = 80;
constexpr std::uint16_t kHttpsPort = 443;
constexpr std::string_view kApi = "/v1";

std::uint16_t port_of(Transport transport) {
  return transport == Transport::tls ? kHttpsPort : kHttpPort;
}

std::string bracketed(const std::string& host) {
  return host.find(':') == std::string::npos ? host : fmt::format("[{}]", host);
}

tl::unexpected<Error> wrong(std::string_view why) {
  return fail(ErrorCode::invalid_request,
              fmt::format("takes a URL such as http://127.0.0.1:8000/v1: {}", why));
}

bool may_stand_in_url(char c) { return c > ' ' && c < '\x7F' && c != '"' && c != '\\'; }

struct Place {
  std::string host;
  std::optional<std::uint16_t> port;
};

Result<Place> read_place(std::string_view text) {
  Place place;
  std::string_view port;
  bool has_port = false;
  if (text.starts_with('[')) {
    const std::size_t end = text.find(']');
    if (end == std::string_view::npos) return wrong("the bracket of its address isn't closed");
    place.host = std::string(text.substr(1, end - 1));
    text.remove_prefix(end + 1);
    if (!text.empty() && !text.starts_with(':')) return wrong("a port stands behind a colon");
    has_port = !text.empty();
    port = has_port ? text.substr(1) : text;
  } else {
    const std::size_t colon = text.find(':');
    has_port = colon != std::string_view::npos;
    place.host = to_lower(text.substr(0, colon));
    if (has_port) port = text.substr(colon + 1);
  }
  if (place.host.empty()) return wrong("it names no host");
  if (!has_port) return place;
  std::uint16_t number = 0;
  const auto [end, error] = std::from_chars(port.data(), port.data() + port.size(), number);
  if (error != std::errc() || end != port.data() + port.size() || number == 0)
    return wrong("its port is no number from 1 to 65535");
  place.port = number;
  return place;
}

}  // namespace

std::string RemoteUrl::text() const {
  const std::string_view scheme = transport == Transport::tls ? "https" : "http";
  const std::string shown_port = port == port_of(transport) ? "" : fmt::format(":{}", port);
  return fmt::format("{}://{}{}{}", scheme, bracketed(host), shown_port, prefix);
}

std::string RemoteUrl::place() const { return fmt::format("{}:{}", bracketed(host), port); }

std::string RemoteUrl::beside(std::string_view path) const {
  std::string_view root = prefix;
  if (root.ends_with(kApi)) root.remove_suffix(kApi.size());
  return fmt::format("{}{}", root, path);
}

Result<RemoteUrl> parse_remote_url(std::string_view text) {
  if (!std::ranges::all_of(text, may_stand_in_url))
    return wrong("it holds characters that no URL does");
  RemoteUrl url;
  if (text.starts_with("https://")) {
    url.transport = Transport::tls;
  } else if (!text.starts_with("http://")) {
    return wrong("it begins with neither http:// nor https://");
  }
  text.remove_prefix(text.find("//") + 2);
  const std::size_t path_at = std::min(text.find_first_of("/?#"), text.size());
  const std::string_view authority = text.substr(0, path_at);
  std::string_view path = text.substr(path_at);
  if (authority.find('@') != std::string_view::npos) {
    return fail(ErrorCode::invalid_request,
                "takes a URL without a name or password in it; name the environment variable "
                "that holds the key by key_env");
  }
  if (path.find_first_of("?#") != std::string_view::npos)
    return wrong("a query or a fragment has no place in it");
  Result<Place> place = read_place(authority);
  if (!place) return pass_on(place);
  url.host = std::move(place->host);
  url.port = place->port.value_or(port_of(url.transport));
  while (path.ends_with('/')) path.remove_suffix(1);
  if (path.ends_with("/completions") || path.ends_with("/models"))
    return wrong("it ends where the API begins, as in /v1");
  url.prefix = std::string(path.empty() ? kApi : path);
  return url;
}

}  // namespace werk::engine::remote
