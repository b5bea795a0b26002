// Who may ask: keys and Host names. Pure; made once from the settings. Keys are compared in
// constant time and never leave this class.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "werk/base/result.hpp"
#include "werk/http/message.hpp"

namespace werk::gateway {

// Whether a request's Host must be one of this machine's loopback names or an allowed one: the
// guard against a web page that reaches a node without a key through a name of its own.
enum class HostCheck : std::uint8_t { off, on };

struct AccessSettings {
  std::vector<std::string> keys;  // empty: any key or none is accepted
  HostCheck host_check = HostCheck::on;
  std::vector<std::string> allowed_hosts;  // names without port; pages from there may call, too
};

class Access {
 public:
  explicit Access(AccessSettings settings) : settings_(std::move(settings)) {}

  // forbidden, or nothing: a Host that isn't served, or a call from a foreign web page.
  Status check_host(const http::Request& request) const;
  // unauthorized, or nothing. `Authorization: Bearer KEY` and `X-API-Key: KEY`.
  Status check_key(const http::Request& request) const;
  // The request's Origin if it is that of a web page which may read the answers: one from this
  // machine's loopback names or from an allowed host, over http or https on any port.
  std::optional<std::string_view> page_origin(const http::Request& request) const;

 private:
  Status check_origin(const http::Request& request) const;
  bool is_known(std::string_view key) const;
  bool is_served(std::string_view host) const;

  AccessSettings settings_;
};

}  // namespace werk::gateway
