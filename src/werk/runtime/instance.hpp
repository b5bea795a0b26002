// One loaded runtime from ready to dead, with the line of those who may call it. Shared between its
// cache entry and the leases on it: a runtime that died must stay readable (its exit reason) until
// the last call that was on it has let go, while the entry already starts another. Loop thread
// only.
#pragma once

#include <map>
#include <memory>
#include <optional>

#include "werk/async/clock.hpp"
#include "werk/async/event.hpp"
#include "werk/async/task_group.hpp"
#include "werk/base/result.hpp"
#include "werk/engine/engine.hpp"
#include "werk/runtime/permit_line.hpp"
#include "werk/telemetry/output_rate.hpp"

namespace werk::runtime {

// What a runtime has done since its start.
struct Usage {
  std::uint64_t calls = 0;  // that got the right to run
  std::uint64_t prompt_tokens_cached = 0;
  std::uint64_t prompt_tokens_new = 0;  // not known to have been cached
  std::uint64_t output_tokens = 0;
  bool tells_cached = false;  // the engine has told of a call how much was cached
};

class Instance : public std::enable_shared_from_this<Instance> {
 public:
  Instance(std::unique_ptr<engine::Runtime> runtime, async::Clock& clock, async::TaskGroup& tasks,
           async::Executor executor, std::size_t waiting_max);
  Instance(const Instance&) = delete;
  Instance& operator=(const Instance&) = delete;

  engine::Runtime& runtime() const { return *runtime_; }
  const PermitLine& line() const { return line_; }
  bool is_dead() const { return dead_; }

  // Waits for a permit. Fails with queue_full, unsupported (more choices than slots), cancelled,
  // draining, unloaded, or engine_failed if the runtime died first (nothing was sent: the caller
  // may ask for another runtime).
  async::awaitable<Status> enter(PermitRequest request, std::stop_token stop);
  void leave(CallId call, PermitLine::After after);

  // The runtime is gone: whoever waits for a permit is told so.
  void mark_dead();
  // The node drains: whoever waits for a permit is refused.
  void refuse_waiting();
  // The runtime is stopped under its calls: those that run learn it from ended(), those that wait
  // and those still to come fail with the cause.
  void end(Error cause);
  std::stop_token ended() const { return ended_.get_token(); }
  const std::optional<Error>& end_cause() const { return end_cause_; }

  // The engine said something to one of its calls.
  void note_life(async::TimePoint at) { last_life_ = at; }
  // None: it has said nothing since it was ready.
  std::optional<async::TimePoint> last_life() const { return last_life_; }
  // It gave so many pieces of an answer.
  void note_output(std::uint64_t pieces, async::TimePoint at) { output_rate_.add(pieces, at); }
  std::optional<double> output_per_second() const { return output_rate_.per_second(clock_.now()); }

  void add_usage(const Usage& more);
  const Usage& usage() const { return usage_; }

 private:
  struct Waiter {
    explicit Waiter(async::Executor executor) : answered(std::move(executor)) {}
    async::Event answered;
    std::optional<Error> refusal;
  };

  void wake(const std::vector<CallId>& granted);
  void dismiss(const Error& reason);
  std::unique_ptr<async::Timer> slow_line_note();
  // Looks at the engine until no permit is in quarantine: first shortly after a call left, then
  // twice a second at most.
  async::awaitable<void> watch_quarantine(std::shared_ptr<Instance> self);

  std::unique_ptr<engine::Runtime> runtime_;
  async::Clock& clock_;
  async::TaskGroup& tasks_;
  async::Executor executor_;
  PermitLine line_;
  std::map<CallId, Waiter*> waiters_;
  Usage usage_;
  telemetry::OutputRate output_rate_;
  std::stop_source ended_;
  std::optional<Error> end_cause_;
  std::optional<async::TimePoint> last_life_;
  bool dead_ = false;
  bool watching_quarantine_ = false;
  bool slow_line_told_ = false;
};

}  // namespace werk::runtime
