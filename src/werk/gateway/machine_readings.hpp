// MachineReadings: what the operating system tells of the node and its engines, read at most once a
// second however many ask. Reading takes microseconds and waits for nobody, so it happens on the
// loop. Owned by the gateway, loop thread only.
#pragma once

#include <cstdint>
#include <map>
#include <optional>

#include "werk/async/clock.hpp"
#include "werk/telemetry/process_stats.hpp"

namespace werk::gateway {

class MachineReadings {
 public:
  explicit MachineReadings(async::Clock& clock) : clock_(clock) {}

  telemetry::ProcessStats own() {
    forget_old();
    if (!own_) own_ = telemetry::own_process_stats();
    return *own_;
  }
  // Of a process and its children; none where it can't be told.
  std::optional<std::uint64_t> memory_of(int pid) {
    forget_old();
    const auto known = memory_.find(pid);
    if (known != memory_.end()) return known->second;
    return memory_[pid] = telemetry::tree_memory_bytes(pid);
  }

 private:
  void forget_old() {
    constexpr auto kKeptFor = std::chrono::seconds(1);
    const async::TimePoint now = clock_.now();
    if (read_at_ && now - *read_at_ < kKeptFor) return;
    read_at_ = now;
    own_.reset();
    memory_.clear();
  }

  async::Clock& clock_;
  std::optional<async::TimePoint> read_at_;
  std::optional<telemetry::ProcessStats> own_;
  std::map<int, std::optional<std::uint64_t>> memory_;
};

}  // namespace werk::gateway
