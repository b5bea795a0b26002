// Interrupt: what a person does with Ctrl-C while a command waits for something other than a loop.
// As long as it lives SIGINT and SIGTERM don't end the process: the first of them makes a file
// descriptor readable, to be waited for beside others. At most one at a time; main thread. A second
// signal before take() ends the process as if there were none, so nobody is ever stuck.
#pragma once

#include <chrono>

#include "werk/base/result.hpp"
#include "werk/process/signal_pipe.hpp"

namespace werk::process {

class Interrupt {
 public:
  Interrupt();

  // Readable from the signal on. -1 if the system gave none: signals then do what they always do.
  int descriptor() const { return pipe_.descriptor(); }
  // Whether a signal came, its number or 0; the next one is awaited anew.
  int take();

 private:
  SignalPipe pipe_;
};

// Waits so long, or until a signal comes: then it fails with `cancelled`.
Status pause(std::chrono::milliseconds duration);

}  // namespace werk::process
