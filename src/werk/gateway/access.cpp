#include "werk/gateway/access.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "werk/base/digest.hpp"
#include "werk/base/text.hpp"

namespace werk::gateway {
namespace {

// "localhost:8080" -> "localhost", "[::1]:8080" -> "[::1]".
std::string_view without_port(std::string_view host) {
  if (host.starts_with('[')) {
    const std::size_t end = host.find(']');
    return end == std::string_view::npos ? host : host.substr(0, end + 1);
  }
  return host.substr(0, host.rfind(':'));
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
  std::string_view host = without_port(trim(field.value_or("")));
  if (host.ends_with('.')) host.remove_suffix(1);
  if (is_loopback_name(host)) return {};
  const bool allowed = std::ranges::any_of(settings_.allowed_hosts, [&](const std::string& name) {
    return equals_ignoring_case(name, host);
  });
  if (allowed) return {};
  return fail(ErrorCode::forbidden, Origin::client,
              fmt::format("the Host \"{}\" is not served without a key; start the node with "
                          "--allow-host {} or with a key",
                          printable(host.substr(0, 100)), printable(host.substr(0, 100))));
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

bool Access::is_known(std::string_view key) const {
  // Every key is compared, so that the time tells nothing about which one nearly fitted.
  bool known = false;
  for (const std::string& one : settings_.keys) known = equals_in_constant_time(one, key) || known;
  return known;
}

}  // namespace werk::gateway
