#include "werk/process/signal_pipe.hpp"

#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>

#include "werk/base/assert.hpp"

namespace werk::process {
namespace {

constexpr std::array kEnding = {SIGINT, SIGTERM, SIGHUP, SIGQUIT};
constexpr std::array kAll = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGTSTP, SIGWINCH};

// What the handler may touch.
volatile sig_atomic_t write_descriptor = -1;
volatile sig_atomic_t end_pending = 0;

struct Earlier {
  int signal;
  struct sigaction action;
};
std::vector<Earlier> earlier;

void on_signal(int number) {
  const bool ends = std::ranges::find(kEnding, number) != kEnding.end();
  if (ends && end_pending != 0) {
    ::signal(number, SIG_DFL);
    ::raise(number);
    return;
  }
  if (ends) end_pending = 1;
  const int saved = errno;
  const char byte = static_cast<char>(number);
  [[maybe_unused]] const ssize_t written = ::write(write_descriptor, &byte, 1);
  errno = saved;
}

}  // namespace

SignalPipe::SignalPipe() : SignalPipe(kAll, Ignored::stay) {}

SignalPipe::SignalPipe(std::span<const int> signals, Ignored ignored) {
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
  end_pending = 0;
  struct sigaction action {};
  action.sa_handler = on_signal;
  sigemptyset(&action.sa_mask);
  for (const int signal : signals) {
    Earlier& one = earlier.emplace_back(Earlier{signal, {}});
    ::sigaction(signal, nullptr, &one.action);
    const bool stays = ignored == Ignored::stay && one.action.sa_handler == SIG_IGN;
    if (!stays) ::sigaction(signal, &action, nullptr);
  }
}

SignalPipe::~SignalPipe() {
  if (!read_end_) return;
  for (const Earlier& one : earlier) ::sigaction(one.signal, &one.action, nullptr);
  earlier.clear();
  write_descriptor = -1;
}

std::vector<int> SignalPipe::take() {
  std::vector<int> numbers;
  char byte = 0;
  while (read_end_ && ::read(read_end_.get(), &byte, 1) == 1) numbers.push_back(byte);
  end_pending = 0;
  return numbers;
}

void SignalPipe::stop_here() {
  struct sigaction ours {};
  ::sigaction(SIGTSTP, nullptr, &ours);
  ::signal(SIGTSTP, SIG_DFL);
  ::raise(SIGTSTP);
  ::sigaction(SIGTSTP, &ours, nullptr);
}

}  // namespace werk::process
