#include "tests/support/fake_engine/channel.hpp"

#include <sys/socket.h>
#include <sys/un.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <thread>

namespace werk::fake {

Channel::Channel(const std::string& path) {
  if (path.empty()) return;
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  file_ = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (path.size() < sizeof address.sun_path) {
    path.copy(address.sun_path, path.size());
    const auto* generic = reinterpret_cast<const sockaddr*>(&address);
    if (::connect(file_, generic, sizeof address) == 0) return;
  }
  std::fprintf(stderr, "fake engine: nobody listens on %s\n", path.c_str());
  std::exit(71);
}

void Channel::tell(std::string_view event, boost::json::object members) {
  if (!open()) return;
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  members["event"] = event;
  members["at_us"] = std::chrono::duration_cast<std::chrono::microseconds>(now).count();
  const std::string line = boost::json::serialize(members) + "\n";
  const std::lock_guard lock(mutex_);
  std::string_view rest = line;
  while (!rest.empty()) {
    const ssize_t sent = ::send(file_, rest.data(), rest.size(), MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent <= 0) return;
    rest.remove_prefix(static_cast<std::size_t>(sent));
  }
}

void Channel::listen(std::function<void(const boost::json::object&)> on_command) {
  if (!open()) return;
  std::thread([this, on_command = std::move(on_command)] { read_commands(on_command); }).detach();
}

void Channel::read_commands(const std::function<void(const boost::json::object&)>& on_command) {
  std::string pending;
  std::array<char, 65536> buffer;
  while (true) {
    const ssize_t got = ::recv(file_, buffer.data(), buffer.size(), 0);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return;
    pending.append(buffer.data(), static_cast<std::size_t>(got));
    for (std::size_t end = pending.find('\n'); end != std::string::npos; end = pending.find('\n')) {
      boost::system::error_code error;
      const boost::json::value value = boost::json::parse(pending.substr(0, end), error);
      pending.erase(0, end + 1);
      if (!error && value.is_object()) on_command(value.get_object());
    }
  }
}

}  // namespace werk::fake
