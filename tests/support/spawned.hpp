// What starting a program by hand takes, for the tests' own process classes: its words as exec
// wants them, a pipe, and a bounded wait for its end. Blocking; any thread.
#pragma once

#include <fcntl.h>
#include <poll.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

namespace werk::test {

// {read end, write end}, closed in children.
inline std::array<int, 2> make_pipe() {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) throw std::runtime_error("no pipe");
  return ends;
}

// Points into the texts, with the null that ends such a list.
inline std::vector<char*> pointers(std::vector<std::string>& texts) {
  std::vector<char*> list;
  for (std::string& text : texts) list.push_back(text.data());
  list.push_back(nullptr);
  return list;
}

// The exit status, or 128 and the signal that killed it.
inline int exit_status_of(int wait_status) {
  return WIFEXITED(wait_status) ? WEXITSTATUS(wait_status) : 128 + WTERMSIG(wait_status);
}

// Reaps the child and tells its exit status; none if it doesn't end in time.
inline std::optional<int> exit_within(pid_t pid, std::chrono::milliseconds limit) {
  const int handle = static_cast<int>(::syscall(SYS_pidfd_open, pid, 0));
  pollfd watched{handle, POLLIN, 0};
  const int ready = ::poll(&watched, 1, static_cast<int>(limit.count()));
  ::close(handle);
  if (ready <= 0) return std::nullopt;
  int status = 0;
  ::waitpid(pid, &status, 0);
  return exit_status_of(status);
}

}  // namespace werk::test
