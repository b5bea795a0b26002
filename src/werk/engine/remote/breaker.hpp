// Breaker: decides from how calls and probes went whether a peer is to be left alone. A call that
// was answered, were it with a refusal, is proof of health; a probe is proof only for probes, since
// a peer's front may answer them while its engine is dead. Pure; owned by a remote's runtime.
#pragma once

#include <cstddef>

namespace werk::engine::remote {

class Breaker {
 public:
  static constexpr std::size_t kFailuresMax = 3;  // in a row

  void call_answered() { failed_calls_ = failed_probes_ = 0; }
  void call_failed() { ++failed_calls_; }
  void probe_answered() { failed_probes_ = 0; }
  void probe_failed() { ++failed_probes_; }

  bool is_open() const { return failed_calls_ >= kFailuresMax || failed_probes_ >= kFailuresMax; }
  // Worth a second look soon.
  bool probes_fail() const { return failed_probes_ > 0; }

 private:
  std::size_t failed_calls_ = 0;
  std::size_t failed_probes_ = 0;
};

}  // namespace werk::engine::remote
