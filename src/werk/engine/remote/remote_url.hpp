// Where a remote is, as its setting spells it: http or https, host, port and the path below which
// its API lies ("/v1" where none is named). Never holds a key: an address is shown to people. Plain
// values, pure.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "werk/base/result.hpp"

namespace werk::engine::remote {

enum class Transport : std::uint8_t { plain, tls };

struct RemoteUrl {
  Transport transport = Transport::plain;
  std::string host;  // without brackets
  std::uint16_t port = 80;
  std::string prefix = "/v1";  // without a slash at its end

  // "https://api.example/v1"; the port where it isn't the scheme's own.
  std::string text() const;
  // "api.example:8443", for errors.
  std::string place() const;
  // The same server's path beside the API: of "/x/v1" and "/werk" it is "/x/werk".
  std::string beside(std::string_view path) const;

  bool operator==(const RemoteUrl&) const = default;
};

// The message of a failure says what is taken; whoever asks puts the setting's name before it.
Result<RemoteUrl> parse_remote_url(std::string_view text);

}  // namespace werk::engine::remote
