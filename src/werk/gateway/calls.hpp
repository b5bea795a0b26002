// Calls: the calls that are under way, oldest first, the last ones that ended, and how many there
// were. Each Call enters and leaves by itself; what it came to is counted and told to those who
// follow the node's events. Owned by the gateway, loop thread only.
#pragma once

#include <chrono>
#include <deque>
#include <list>
#include <optional>
#include <string>

#include "werk/gateway/call.hpp"
#include "werk/telemetry/recorder.hpp"

namespace werk::gateway {

// What is kept of a call that has ended: no content, no key.
struct CallRecord {
  std::string id;
  telemetry::Dialect dialect = telemetry::Dialect::openai;
  std::string_view route;
  std::string model;
  telemetry::Outcome outcome = telemetry::Outcome::failed;
  int status = 0;
  std::optional<ErrorCode> cause;
  std::chrono::system_clock::time_point ended_at;
  async::Duration load_time{};
  async::Duration permit_time{};
  std::optional<async::Duration> first_byte;
  async::Duration total{};
  telemetry::TokenCounts tokens;
};

class Calls {
 public:
  static constexpr std::size_t kRecentMax = 64;

  // Both borrowed.
  Calls(async::Clock& clock, telemetry::Recorder& recorder) : clock_(clock), recorder_(recorder) {}
  Calls(const Calls&) = delete;
  Calls& operator=(const Calls&) = delete;

  const CallCounters& counters() const { return counters_; }
  const std::list<const Call*>& active() const { return active_; }
  // The latest last.
  const std::deque<CallRecord>& recent() const { return recent_; }
  async::TimePoint now() const { return clock_.now(); }

 private:
  friend class Call;

  std::list<const Call*>::iterator enter(const Call& call);
  void admitted(const Call& call);
  void leave(std::list<const Call*>::iterator place, CallRecord record,
             const telemetry::EndedCall& ended);

  async::Clock& clock_;
  telemetry::Recorder& recorder_;
  CallCounters counters_;
  std::list<const Call*> active_;
  std::deque<CallRecord> recent_;
};

}  // namespace werk::gateway
