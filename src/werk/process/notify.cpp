#include "werk/process/notify.hpp"

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>

#include "werk/process/descriptor.hpp"
#include "werk/process/program.hpp"

namespace werk::process {

namespace {

constexpr const char* kVariable = "NOTIFY_SOCKET";

}  // namespace

Notifier Notifier::take_from_environment() {
  Notifier notifier(own_variable(kVariable).value_or(""));
  ::unsetenv(kVariable);
  return notifier;
}

void Notifier::tell(std::string_view assignments) const {
  sockaddr_un address{};
  const bool is_name = name_.starts_with('/') || name_.starts_with('@');
  if (!is_name || name_.size() >= sizeof(address.sun_path)) return;
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path, name_.data(), name_.size());
  // An abstract name begins with a zero byte and has none at its end.
  const bool is_abstract = name_.starts_with('@');
  if (is_abstract) address.sun_path[0] = '\0';
  const std::size_t size = offsetof(sockaddr_un, sun_path) + name_.size() + (is_abstract ? 0 : 1);
  const Descriptor socket(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!socket) return;
  [[maybe_unused]] const ssize_t sent =
      ::sendto(socket.get(), assignments.data(), assignments.size(), MSG_NOSIGNAL,
               reinterpret_cast<const sockaddr*>(&address), static_cast<socklen_t>(size));
}

}  // namespace werk::process
