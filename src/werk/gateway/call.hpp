// Call: what is recorded of one generation request, once, whatever happens to it: what it is at
// while it lives, and at its end the access line, the counters, the events. Created when a request
// arrives, ended by its destructor; Calls knows all of them and outlives them. Loop thread only.
#pragma once

#include <cstdint>
#include <list>
#include <optional>
#include <string>
#include <string_view>

#include "werk/async/clock.hpp"
#include "werk/base/error.hpp"
#include "werk/routing/router.hpp"
#include "werk/runtime/wait.hpp"
#include "werk/telemetry/metrics.hpp"

namespace werk::gateway {

class Calls;

struct CallCounters {
  std::uint64_t active = 0;
  std::uint64_t served = 0;
  std::uint64_t failed = 0;
  std::uint64_t cancelled = 0;
};

class Call final : public runtime::WaitObserver {
 public:
  using Outcome = telemetry::Outcome;
  using Phase = telemetry::CallPhase;

  // `route` is a literal.
  Call(Calls& calls, std::string id, std::string_view route);
  Call(const Call&) = delete;
  Call& operator=(const Call&) = delete;
  ~Call() override;

  const std::string& id() const { return id_; }
  std::string_view route() const { return route_; }
  telemetry::Dialect dialect() const;

  // Which installed model and which runtime it is for.
  void routed(routing::SharedRoute way) { way_ = std::move(way); }
  void waits_for(runtime::WaitFor what) override;
  // It may run: the engine gets it now.
  void admitted();
  // The engine counts its prompt and generates nothing.
  void counting() { enter(Phase::prompt); }
  // A piece of the engine's stream came, after which the answer has so many parts. Returns how many
  // of them are new.
  std::uint64_t piece(std::uint64_t parts, async::TimePoint now);
  // The answer itself begins, whatever was sent to bridge the wait.
  void first_byte();
  bool answer_has_begun() const { return first_byte_.has_value(); }
  void ended(Outcome outcome);
  void failed(const Error& error);
  void cancelled() { ended(Outcome::cancelled); }

  Phase phase() const { return phase_; }
  async::TimePoint phase_since() const { return phase_since_; }
  async::TimePoint begun() const { return begun_; }
  // How long it waited for a place and a load, and for a slot: also where it was refused meanwhile.
  async::Duration load_time() const { return load_time_; }
  async::Duration permit_time() const { return permit_time_; }
  // When the engine said something last; from when it was asked.
  async::TimePoint last_life() const { return last_life_; }
  std::uint64_t parts() const { return parts_; }
  // Empty until it is routed.
  std::string_view model_id() const;
  std::string runtime_key() const;
  // The installed model's id, else what the client asked for, cut short. Empty: neither is known.
  std::string shown_model() const;

  std::string model;   // as the client wrote it
  std::string client;  // its address
  bool streamed = false;
  std::optional<std::uint64_t> prompt_tokens;
  std::optional<std::uint64_t> cached_tokens;
  std::optional<std::uint64_t> completion_tokens;
  int status = 200;

 private:
  void enter(Phase phase);
  void end_wait();
  void write_access_line(async::Duration total) const;

  Calls& calls_;
  std::string id_;
  std::string_view route_;
  async::TimePoint begun_;
  Phase phase_ = Phase::reading;
  async::TimePoint phase_since_;
  async::TimePoint last_life_;
  bool waits_ = false;
  async::Duration load_time_{};
  async::Duration permit_time_{};
  routing::SharedRoute way_;
  bool admitted_ = false;
  std::uint64_t parts_ = 0;
  async::TimePoint last_part_{};
  telemetry::Histogram inter_token_ = telemetry::inter_token_histogram();
  std::optional<async::Duration> first_byte_;
  Outcome outcome_ = Outcome::failed;
  std::optional<Error> error_;
  std::list<const Call*>::iterator place_;  // in the list of active calls
};

}  // namespace werk::gateway
