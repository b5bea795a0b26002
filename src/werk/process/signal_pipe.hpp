// SignalPipe: signals as something to be waited for beside other descriptors, for a program that
// must tidy up before it ends, stops or has another size. As long as it lives the signals it was
// made for do nothing of their own; a second ending one before take() ends the process all the
// same, so nobody is ever stuck. At most one at a time (an Interrupt holds one); main thread.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "werk/process/descriptor.hpp"

namespace werk::process {

class SignalPipe {
 public:
  // What becomes of a signal that somebody had us ignore (nohup, a shell's background job).
  enum class Ignored : std::uint8_t { stay, taken };

  // SIGINT, SIGTERM, SIGHUP and SIGQUIT end; SIGTSTP stops; SIGWINCH tells of another size.
  SignalPipe();
  // Those of these alone.
  SignalPipe(std::span<const int> signals, Ignored ignored);
  SignalPipe(const SignalPipe&) = delete;
  SignalPipe& operator=(const SignalPipe&) = delete;
  ~SignalPipe();

  // Readable from a signal on. -1 if the system gave none: signals then do what they always do.
  int descriptor() const { return read_end_.get(); }
  // The numbers of those that came, in their order.
  std::vector<int> take();
  // Stops the process as its terminal wants it, and returns when it goes on.
  static void stop_here();

 private:
  Descriptor read_end_;
  Descriptor write_end_;
};

}  // namespace werk::process
