// SignalWatch: SIGTERM, SIGINT and SIGHUP as turns of the loop; SIGPIPE is ignored, so that writing
// to a peer that left is an error and not an end. Owned by main (or by a command that runs a loop);
// loop thread only. Children start with all signals at their defaults.
#pragma once

#include <functional>
#include <memory>

#include "werk/async/awaitable.hpp"

namespace werk::process {

class SignalWatch {
 public:
  // Calls back for every signal until the watch is destroyed.
  SignalWatch(async::Executor executor, std::function<void(int number)> on_signal);
  SignalWatch(const SignalWatch&) = delete;
  SignalWatch& operator=(const SignalWatch&) = delete;
  ~SignalWatch();

 private:
  struct State;
  // Shared with the handler that waits in the loop: it may be queued already when the watch goes.
  std::shared_ptr<State> state_;
};

}  // namespace werk::process
