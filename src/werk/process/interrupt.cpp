#include "werk/process/interrupt.hpp"

#include <poll.h>
#include <signal.h>

#include <array>

namespace werk::process {
namespace {

constexpr std::array kSignals = {SIGINT, SIGTERM};

}  // namespace

Interrupt::Interrupt() : pipe_(kSignals, SignalPipe::Ignored::taken) {}

int Interrupt::take() {
  const std::vector<int> numbers = pipe_.take();
  return numbers.empty() ? 0 : numbers.front();
}

Status pause(std::chrono::milliseconds duration) {
  Interrupt interrupt;
  pollfd signal{interrupt.descriptor(), POLLIN, 0};
  ::poll(&signal, 1, static_cast<int>(duration.count()));
  if (interrupt.take() != 0) return fail(ErrorCode::cancelled, "stopped");
  return {};
}

}  // namespace werk::process
