// RuntimeSink: who is told what happens to runtimes. The runtime cache calls it, the Recorder takes
// it; so the cache counts nothing and knows no HTTP. Calls happen on the loop thread, in the turn
// of what they tell of, and must not come back into the cache. The sink must outlive whoever calls
// it.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "werk/base/error.hpp"

namespace werk::telemetry {

struct RuntimeName {
  std::string key;
  std::string model;
  std::string engine;
  std::string pool;
};

// Why a runtime is stopped. capacity: another model needs its place. not_kept: its pool keeps none
// without calls. silent: it said nothing to any of its calls and is replaced.
enum class StopReason : std::uint8_t { capacity, idle, not_kept, unloaded, silent, shutdown };

constexpr std::string_view name_of(StopReason reason) {
  switch (reason) {
    case StopReason::capacity: return "capacity";
    case StopReason::idle: return "idle";
    case StopReason::not_kept: return "not_kept";
    case StopReason::unloaded: return "unloaded";
    case StopReason::silent: return "silent";
    case StopReason::shutdown: return "shutdown";
  }
  return "capacity";
}

class RuntimeSink {
 public:
  virtual ~RuntimeSink() = default;
  virtual void starting(const RuntimeName& runtime) = 0;
  virtual void progressed(const RuntimeName& runtime, std::string_view what) = 0;
  virtual void ready(const RuntimeName& runtime, std::chrono::duration<double> took,
                     std::size_t slots) = 0;
  virtual void start_failed(const RuntimeName& runtime, const Error& error) = 0;
  // It was told to stop, or its start was.
  virtual void stopping(const RuntimeName& runtime, StopReason reason) = 0;
  // Nothing of it is left.
  virtual void stopped(const RuntimeName& runtime, StopReason reason) = 0;
  // It ended by itself; `how` is masked as its exit reason is.
  virtual void died(const RuntimeName& runtime, std::string_view how) = 0;
};

}  // namespace werk::telemetry
