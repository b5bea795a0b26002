// What the operating system knows about sockets of this host: whether the process behind a
// connection's other end still holds it (an end of file alone does not tell a half-close from a
// close), and who holds a port. Linux only: sock_diag, with /proc/net/tcp where that is not to be
// had. Inside http only; a look at a peer takes microseconds, at a port milliseconds.
#pragma once

#include <cstdint>
#include <string>

namespace werk::http {

enum class Peer : std::uint8_t { present, gone };

// To be asked about a connected socket whose input has ended. A peer on another host counts as
// gone: nobody can look.
Peer look_at_peer(int descriptor, int family);

// "process 1234 (ollama)" for the program that listens on the TCP port, "" if it cannot be told.
std::string port_holder(std::uint16_t port);

}  // namespace werk::http
