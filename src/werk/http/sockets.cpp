#include "werk/http/sockets.hpp"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <optional>
#include <system_error>

#include "werk/http/peer.hpp"

namespace werk::http {

namespace {

union SocketAddress {
  sockaddr_storage storage;
  sockaddr any;
  sockaddr_in four;
  sockaddr_in6 six;
  sockaddr_un local;
};

std::string peer_text(const SocketAddress& address) {
  std::array<char, INET6_ADDRSTRLEN> text{};
  if (address.any.sa_family == AF_INET) {
    inet_ntop(AF_INET, &address.four.sin_addr, text.data(), text.size());
    return fmt::format("{}:{}", text.data(), ntohs(address.four.sin_port));
  }
  if (address.any.sa_family != AF_INET6) return "unix";
  if (IN6_IS_ADDR_V4MAPPED(&address.six.sin6_addr)) {
    inet_ntop(AF_INET, &address.six.sin6_addr.s6_addr[12], text.data(), text.size());
    return fmt::format("{}:{}", text.data(), ntohs(address.six.sin6_port));
  }
  inet_ntop(AF_INET6, &address.six.sin6_addr, text.data(), text.size());
  return fmt::format("[{}]:{}", text.data(), ntohs(address.six.sin6_port));
}

bool is_loopback(const SocketAddress& address) {
  if (address.any.sa_family == AF_INET) return (ntohl(address.four.sin_addr.s_addr) >> 24) == 127;
  if (address.any.sa_family != AF_INET6) return true;
  const in6_addr& six = address.six.sin6_addr;
  return IN6_IS_ADDR_LOOPBACK(&six) || (IN6_IS_ADDR_V4MAPPED(&six) && six.s6_addr[12] == 127);
}

void set_option(int descriptor, int level, int name, int value) {
  ::setsockopt(descriptor, level, name, &value, sizeof value);
}

void prepare_connected(int descriptor, int family, bool loopback) {
  if (family == AF_UNIX) return;
  set_option(descriptor, IPPROTO_TCP, TCP_NODELAY, 1);
  if (loopback) return;
  // A machine that vanished says nothing: ask it.
  set_option(descriptor, SOL_SOCKET, SO_KEEPALIVE, 1);
  set_option(descriptor, IPPROTO_TCP, TCP_KEEPIDLE, 30);
  set_option(descriptor, IPPROTO_TCP, TCP_KEEPINTVL, 10);
  set_option(descriptor, IPPROTO_TCP, TCP_KEEPCNT, 3);
}

struct Target {
  SocketAddress address{};
  socklen_t size = 0;
};

std::optional<Target> tcp_target(const std::string& literal, std::uint16_t port) {
  Target target;
  if (inet_pton(AF_INET, literal.c_str(), &target.address.four.sin_addr) == 1) {
    target.address.four.sin_family = AF_INET;
    target.address.four.sin_port = htons(port);
    target.size = sizeof(sockaddr_in);
    return target;
  }
  if (inet_pton(AF_INET6, literal.c_str(), &target.address.six.sin6_addr) == 1) {
    target.address.six.sin6_family = AF_INET6;
    target.address.six.sin6_port = htons(port);
    target.size = sizeof(sockaddr_in6);
    return target;
  }
  return std::nullopt;
}

std::optional<Target> unix_target(const std::string& path) {
  Target target;
  if (path.empty() || path.size() >= sizeof target.address.local.sun_path) return std::nullopt;
  target.address.local.sun_family = AF_UNIX;
  std::memcpy(target.address.local.sun_path, path.data(), path.size());
  target.size = sizeof(sockaddr_un);
  return target;
}

int open_socket(int family) {
  return ::socket(family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
}

Error port_taken(const std::string& host, std::uint16_t port) {
  const std::string holder = port_holder(port);
  return Error{ErrorCode::conflict,
               fmt::format("{}:{} is in use by {}; stop it or choose another port with --port",
                           host, port, holder.empty() ? "another process" : holder)};
}

Error cannot_listen(const std::string& where, int error) {
  return Error{ErrorCode::io, fmt::format("cannot listen on {}: {}", where, os_message(error))};
}

}  // namespace

std::string os_message(int error) { return std::generic_category().message(error); }

std::string text_of(const Address& address) {
  if (!address.unix_path.empty()) return "the engine's socket";
  const bool six = address.host.find(':') != std::string::npos;
  return fmt::format(fmt::runtime(six ? "[{}]:{}" : "{}:{}"), address.host, address.port);
}

Result<Listening> open_listener(const std::string& host, std::uint16_t port) {
  const auto target = tcp_target(host == "localhost" ? "127.0.0.1" : host, port);
  if (!target) {
    return fail(
        ErrorCode::invalid_request,
        fmt::format("'{}' is not an address to listen on; use one like 127.0.0.1, 0.0.0.0 or ::1",
                    host));
  }
  Listening listening;
  listening.family = target->address.any.sa_family;
  listening.descriptor = open_socket(listening.family);
  if (listening.descriptor < 0) return fail(cannot_listen(host, errno));
  set_option(listening.descriptor, SOL_SOCKET, SO_REUSEADDR, 1);
  if (::bind(listening.descriptor, &target->address.any, target->size) != 0 ||
      ::listen(listening.descriptor, SOMAXCONN) != 0) {
    const int error = errno;
    ::close(listening.descriptor);
    if (error == EADDRINUSE) return fail(port_taken(host, port));
    return fail(cannot_listen(fmt::format("{}:{}", host, port), error));
  }
  SocketAddress bound{};
  socklen_t size = sizeof bound;
  ::getsockname(listening.descriptor, &bound.any, &size);
  const std::uint16_t network =
      bound.any.sa_family == AF_INET ? bound.four.sin_port : bound.six.sin6_port;
  listening.endpoint = Endpoint{host, ntohs(network)};
  return listening;
}

Result<Listening> open_unix_listener(const std::string& path) {
  const auto target = unix_target(path);
  if (!target)
    return fail(ErrorCode::invalid_request,
                "the path is no use for a socket: it is empty or too long");
  Listening listening;
  listening.family = AF_UNIX;
  listening.descriptor = open_socket(AF_UNIX);
  if (listening.descriptor < 0) return fail(cannot_listen(path, errno));
  if (::bind(listening.descriptor, &target->address.any, target->size) != 0 ||
      ::listen(listening.descriptor, SOMAXCONN) != 0) {
    const int error = errno;
    ::close(listening.descriptor);
    return fail(cannot_listen(path, error));
  }
  return listening;
}

Accepted accept_one(const Listening& listener) {
  Accepted accepted;
  SocketAddress peer{};
  socklen_t size = sizeof peer;
  accepted.descriptor =
      ::accept4(listener.descriptor, &peer.any, &size, SOCK_NONBLOCK | SOCK_CLOEXEC);
  if (accepted.descriptor < 0) {
    accepted.error = errno;
    return accepted;
  }
  accepted.loopback = is_loopback(peer);
  accepted.peer = peer_text(peer);
  prepare_connected(accepted.descriptor, listener.family, accepted.loopback);
  return accepted;
}

Connecting begin_to_connect(const Address& address) {
  Connecting connecting;
  const auto target = address.unix_path.empty() ? tcp_target(address.host, address.port)
                                                : unix_target(address.unix_path);
  if (!target) {
    connecting.error = EINVAL;
    return connecting;
  }
  connecting.family = target->address.any.sa_family;
  connecting.descriptor = open_socket(connecting.family);
  if (connecting.descriptor < 0) {
    connecting.error = errno;
    return connecting;
  }
  prepare_connected(connecting.descriptor, connecting.family, is_loopback(target->address));
  if (::connect(connecting.descriptor, &target->address.any, target->size) == 0) return connecting;
  connecting.error = errno;
  if (connecting.error != EINPROGRESS) {
    ::close(connecting.descriptor);
    connecting.descriptor = -1;
  }
  return connecting;
}

int connect_error(int descriptor) {
  int error = 0;
  socklen_t size = sizeof error;
  ::getsockopt(descriptor, SOL_SOCKET, SO_ERROR, &error, &size);
  return error;
}

std::vector<Address> known_places(const Address& address) {
  if (!address.unix_path.empty()) return {address};
  if (address.host == "localhost")
    return {Address{{}, "127.0.0.1", address.port}, Address{{}, "::1", address.port}};
  if (tcp_target(address.host, address.port)) return {address};
  return {};
}

}  // namespace werk::http
