// A listening socket on a free port of the loopback address, for servers that tests write
// themselves. The caller owns the descriptor; any thread.
#pragma once

#include <netinet/in.h>
#include <sys/socket.h>

#include <cstdint>
#include <stdexcept>

namespace werk::test {

// Throws where there is none.
inline int listen_on_loopback(std::uint16_t& port) {
  const int listener = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  const bool listens = ::bind(listener, reinterpret_cast<sockaddr*>(&address), size) == 0 &&
                       ::listen(listener, SOMAXCONN) == 0 &&
                       ::getsockname(listener, reinterpret_cast<sockaddr*>(&address), &size) == 0;
  if (!listens) throw std::runtime_error("no port to listen on");
  port = ntohs(address.sin_port);
  return listener;
}

}  // namespace werk::test
