// RuntimeCache: which runtimes are resident, carried out. It feeds Residency what happens and does
// what Residency says: starts and stops engines, answers waiters, watches for deaths, backs off
// after failed starts. Owned by the app, loop thread only. One process per runtime key, ever; a
// call that leaves while it waits hurts nobody else.
#pragma once

#include <chrono>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "werk/async/clock.hpp"
#include "werk/async/task_group.hpp"
#include "werk/engine/engine.hpp"
#include "werk/runtime/lease.hpp"
#include "werk/runtime/residency.hpp"
#include "werk/runtime/wait.hpp"
#include "werk/telemetry/runtime_sink.hpp"

namespace werk::runtime {

// What is set for one model.
struct ModelRule {
  Pinned pinned = Pinned::no;
  std::optional<async::Duration> idle_timeout = std::nullopt;  // instead of the node's; 0: never
};

// Whether a runtime stays when nobody uses it.
enum class Retention : std::uint8_t { keep, drop };

// What is set for one pool of runtimes.
struct PoolRule {
  std::size_t capacity = 0;                                     // runtimes; 0: no limit
  std::optional<async::Duration> capacity_wait = std::nullopt;  // instead of the cache's
  std::string setting = "--max-resident";                       // that raises the capacity
  Retention retention = Retention::keep;
};

struct CacheSettings {
  std::map<std::string, PoolRule> pools = {};  // by name; others have no limit
  async::Duration capacity_wait =
      std::chrono::seconds(60);  // for a place in a full pool; 0: refuse at once
  async::Duration fair_turn = std::chrono::seconds(2);
  async::Duration start_timeout = std::chrono::seconds(300);  // without progress
  async::Duration stop_grace = std::chrono::seconds(5);       // between asking and killing
  std::size_t waiting_max = 1024;  // calls per runtime, loading and queueing together
  async::Duration idle_timeout{};  // a runtime without calls for so long is stopped; 0: never
  std::map<std::string, ModelRule> by_model = {};  // by model id
};

// What a call asks of a runtime.
struct Ask {
  std::size_t weight = 1;  // choices it generates at once
  std::string client = {};
  WaitObserver* observer = nullptr;  // outlives the call to admit()
};

// A call that may run now.
struct Admission {
  Lease lease;
  Permit permit;
};

// The runtimes of one model: all that were started under its id, and the one its present plan names
// (two ids over equal files share one).
struct ModelRuntimes {
  std::string model;
  std::optional<engine::RuntimeKey> key = std::nullopt;
};

enum class UnloadHow : std::uint8_t { after_calls, now };

struct RuntimeSnapshot {
  std::string key;
  std::string model;
  std::string engine;
  std::string pool;
  engine::Ownership ownership = engine::Ownership::owned;
  RuntimeState state = RuntimeState::absent;
  std::optional<int> pid;
  std::chrono::system_clock::time_point since;
  std::optional<std::size_t> slots_total;  // none: Werk bounds nothing, or it isn't known
  std::size_t slots_busy = 0;
  std::size_t waiting = 0;
  std::string last_error;
  Pinned pinned = Pinned::no;
  std::chrono::system_clock::time_point last_used;
  std::optional<async::Duration> idle_timeout;
  std::string progress;  // the last sign of life of its start
  // Of a start: since its last sign of life.
  std::optional<async::Duration> silent_start;
  std::optional<async::Duration> load_time;  // what its start took
  std::optional<double> output_per_second;   // none: nothing came in the last seconds
  Usage usage;
};

struct PoolSnapshot {
  std::string name;
  std::size_t capacity = 0;  // 0: no limit
  std::size_t resident = 0;  // starting to stopping
  std::size_t starting = 0;
  std::size_t pinned = 0;  // of the resident ones
};

class RuntimeCache {
 public:
  RuntimeCache(async::Executor executor, async::Clock& clock, CacheSettings settings);
  ~RuntimeCache();
  RuntimeCache(const RuntimeCache&) = delete;
  RuntimeCache& operator=(const RuntimeCache&) = delete;

  // Who is told what happens to runtimes; before the first call.
  void set_sink(telemetry::RuntimeSink& sink) { sink_ = &sink; }

  // Joins, starts, waits or refuses. Fails with cancelled, capacity, queue_full, draining,
  // unloaded, start_failed, model_unusable or whatever the start failed with. `engine` must outlive
  // the cache's runtimes, `plan` the call.
  async::awaitable<Result<Lease>> acquire(engine::Engine& engine, const engine::StartPlan& plan,
                                          std::stop_token stop, WaitObserver* observer = nullptr);

  // acquire() and then a permit; a runtime that dies while the call waits for its permit is
  // replaced.
  async::awaitable<Result<Admission>> admit(engine::Engine& engine, const engine::StartPlan& plan,
                                            Ask ask, std::stop_token stop);

  // Stops the model's runtimes and returns, once they are gone, how many there were. after_calls:
  // running calls finish, later ones wait for the next start. now: its calls end with `unloaded`.
  // Fails with `cancelled` when the caller leaves; the runtimes go all the same.
  async::awaitable<Result<std::size_t>> unload(ModelRuntimes which, UnloadHow how,
                                               std::stop_token stop);
  // Holds for the runtime that is loaded and for those that will be.
  void pin(const ModelRuntimes& which, Pinned pinned);
  std::vector<std::string> pins() const { return {pins_.begin(), pins_.end()}; }

  std::vector<RuntimeSnapshot> snapshot() const;
  std::vector<PoolSnapshot> pools() const;
  Waits waits() const;
  std::size_t waiting() const { return waits().all(); }

  // From now on nothing starts: waiters are refused, idle runtimes stop, leased ones when their
  // calls have ended.
  void begin_shutdown();
  // The drain limit has passed: leased runtimes stop too.
  void stop_leased();
  // Returns when nothing runs any more. After begin_shutdown().
  async::awaitable<void> stopped();

 private:
  friend class Lease;
  using EntryId = KeyId;

  struct Pool {
    PoolRule rule;
    Residency residency;
    std::unique_ptr<async::Timer> turn_timer;
    std::optional<TicketId> turn_of;
  };
  // One runtime key ever asked for. `instance` is set while its runtime is up or being stopped.
  struct Entry {
    EntryId id = 0;
    engine::Engine* engine = nullptr;
    engine::StartPlan plan;
    Pool* pool = nullptr;
    std::shared_ptr<Instance> instance;
    std::stop_source start_stop;
    bool start_runs = false;
    // Set when the runtime that starts or runs now is gone. Shared with those who unload it, whose
    // wait may end after the next start has replaced it.
    std::shared_ptr<async::Event> gone;
    std::chrono::system_clock::time_point since{};
    std::chrono::system_clock::time_point last_used{};
    std::unique_ptr<async::Timer> idle_timer;
    std::string progress;
    async::TimePoint progress_at{};
    async::Duration load_time{};
    std::optional<telemetry::StopReason> stop_reason;  // unset: another one needs the place
    std::optional<Error> last_error;
    unsigned failures = 0;
    async::TimePoint retry_at{};
  };
  struct Waiter {
    Waiter(async::Executor executor, const Entry& for_entry, WaitObserver* wait_observer)
        : entry(for_entry), observer(wait_observer), answered(std::move(executor)) {}
    const Entry& entry;
    WaitObserver* observer;
    async::Event answered;
    std::optional<Error> refusal;
    std::shared_ptr<Instance> instance;  // set with a grant
  };

  Entry& entry_for(engine::Engine& engine, const engine::StartPlan& plan);
  Entry& known_or_new(engine::Engine& engine, const engine::StartPlan& plan);
  std::optional<Error> refuse_beforehand(const Entry& entry) const;
  std::unique_ptr<async::Timer> place_timer(Entry& entry, TicketId ticket);
  void apply(Pool& pool, const Residency::Effects& effects);
  void carry_out(const Effect& effect);
  void answer(TicketId ticket, std::optional<Error> refusal, std::shared_ptr<Instance> instance);
  void tell_waiter(TicketId ticket) const;
  void tell_stopped(Entry& entry) const;
  static telemetry::RuntimeName name_of(const Entry& entry);
  void watch_turn(Pool& pool);
  void watch_idle(Entry& entry);
  async::Duration idle_timeout(const Entry& entry) const;
  async::Duration capacity_wait(const PoolRule& rule) const;
  bool belongs(const Entry& entry, const ModelRuntimes& which) const;
  Error no_place(const Entry& entry) const;
  Error behind_pins(const Entry& entry) const;
  static Error unloaded_error();
  RuntimeSnapshot snapshot_of(const Entry& entry) const;
  void release(EntryId entry, TicketId ticket);
  void note_death(Entry& entry, const std::shared_ptr<Instance>& instance);
  void condemn(Entry& entry, const std::shared_ptr<Instance>& instance, Error cause);
  void note_progress(Entry& entry, std::string_view what);
  void note_failure(Entry& entry, Error error);

  async::awaitable<void> run_start(Entry& entry);
  async::awaitable<void> run_stop(Entry& entry, std::shared_ptr<Instance> instance);
  async::awaitable<void> watch_exit(Entry& entry, std::shared_ptr<Instance> instance);

  async::Executor executor_;
  async::Clock& clock_;
  CacheSettings settings_;
  telemetry::RuntimeSink* sink_ = nullptr;
  async::TaskGroup tasks_;
  std::map<std::string, std::unique_ptr<Pool>> pools_;
  std::vector<std::unique_ptr<Entry>> entries_;  // index = EntryId
  std::map<TicketId, Waiter*> waiters_;
  TicketId next_ticket_ = 1;
  std::set<std::string> pins_;  // model ids
  bool has_idle_timeouts_ = false;
  bool down_ = false;
};

}  // namespace werk::runtime
