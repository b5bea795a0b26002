// The socket calls of the operating system that servers and clients need, without any waiting:
// opening listeners, accepting, and beginning to connect. Descriptors are non-blocking, closed on
// exec, and the caller's to close; TCP_NODELAY is set on every TCP connection, and a peer on
// another machine is asked after 30 s of silence whether it still lives. Inside http only.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "werk/base/result.hpp"
#include "werk/http/client.hpp"
#include "werk/http/server.hpp"

namespace werk::http {

struct Listening {
  int descriptor = -1;
  int family = 0;
  Endpoint endpoint;
};
Result<Listening> open_listener(const std::string& host, std::uint16_t port);
Result<Listening> open_unix_listener(const std::string& path);

struct Accepted {
  int descriptor = -1;
  int error = 0;  // errno where there is no descriptor
  std::string peer;
  bool loopback = false;
};
Accepted accept_one(const Listening& listener);

struct Connecting {
  int descriptor = -1;
  int family = 0;
  int error = 0;  // 0: connected; EINPROGRESS: wait until writable, then ask connect_error();
                  // EAGAIN: try again a little later
};
Connecting begin_to_connect(const Address& address);
int connect_error(int descriptor);

// The addresses to try where nothing need be looked up: a literal one is itself, "localhost" is
// IPv4's, then IPv6's. Empty: a name.
std::vector<Address> known_places(const Address& address);

std::string os_message(int error);
std::string text_of(const Address& address);

}  // namespace werk::http
