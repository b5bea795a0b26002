#include "werk/process/interrupt.hpp"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include <array>
#include <cerrno>

#include "werk/base/assert.hpp"

namespace werk::process {
namespace {

constexpr std::array kSignals = {SIGINT, SIGTERM};

// What the handler may touch.
volatile sig_atomic_t write_descriptor = -1;
volatile sig_atomic_t pending = 0;

std::array<struct sigaction, kSignals.size()> earlier;

void on_signal(int number) {
  if (pending != 0) {
    ::signal(number, SIG_DFL);
    ::raise(number);
    return;
  }
  pending = number;
  const int saved = errno;
  const char byte = 1;
  [[maybe_unused]] const ssize_t written = ::write(write_descriptor, &byte, 1);
  errno = saved;
}

}  // namespace

Interrupt::Interrupt() {
  WERK_ASSERT(write_descriptor == -1);
  std::array<int, 2> ends{};
  if (::pipe(ends.data()) != 0) return;
  for (const int end : ends) {
    ::fcntl(end, F_SETFD, FD_CLOEXEC);
    ::fcntl(end, F_SETFL, O_NONBLOCK);
  }
  read_end_ = Descriptor(ends[0]);
  write_end_ = Descriptor(ends[1]);
  write_descriptor = ends[1];
  pending = 0;
  struct sigaction action {};
  action.sa_handler = on_signal;
  sigemptyset(&action.sa_mask);
  for (std::size_t i = 0; i < kSignals.size(); ++i) ::sigaction(kSignals[i], &action, &earlier[i]);
}

Interrupt::~Interrupt() {
  if (!read_end_) return;
  for (std::size_t i = 0; i < kSignals.size(); ++i) ::sigaction(kSignals[i], &earlier[i], nullptr);
  write_descriptor = -1;
}

int Interrupt::take() {
  char byte = 0;
  while (read_end_ && ::read(read_end_.get(), &byte, 1) == 1) {
  }
  const int number = pending;
  pending = 0;
  return number;
}

Status pause(std::chrono::milliseconds duration) {
  Interrupt interrupt;
  pollfd signal{interrupt.descriptor(), POLLIN, 0};
  ::poll(&signal, 1, static_cast<int>(duration.count()));
  if (interrupt.take() != 0) return fail(ErrorCode::cancelled, "stopped");
  return {};
}

}  // namespace werk::process
