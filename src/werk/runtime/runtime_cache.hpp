// RuntimeCache: which runtimes are resident, carried out. It feeds Residency what happens and does
// what Residency says: starts and stops engines, answers waiters, watches for deaths, backs off
// after failed starts. Owned by the app, loop thread only. One process per runtime key, ever; a
// call that leaves while it waits hurts nobody else.
#pragma once

#include <chrono>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "werk/async/clock.hpp"
#include "werk/async/task_group.hpp"
#include "werk/engine/engine.hpp"
#include "werk/runtime/lease.hpp"
#include "werk/runtime/residency.hpp"

namespace werk::runtime {

// What is set for one model.
struct ModelRule {
  Pinned pinned = Pinned::no;
  std::optional<async::Duration> idle_timeout = std::nullopt;  // instead of the node's; 0: never
};

struct CacheSettings {
  std::map<std::string, std::size_t> pool_capacity =
      {};  // runtimes per pool; absent or 0: no limit
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
};

// A call that may run now.
struct Admission {
  Lease lease;
  Permit permit;
  async::Duration load_time{};    // spent waiting for a place or a load
  async::Duration permit_time{};  // spent waiting for a slot
};

struct RuntimeSnapshot {
  std::string key;
  std::string model;
  std::string engine;
  RuntimeState state = RuntimeState::absent;
  std::optional<int> pid;
  std::chrono::system_clock::time_point since;
  std::size_t slots_total = 0;
  std::size_t slots_busy = 0;
  std::size_t waiting = 0;
  std::string last_error;
};

class RuntimeCache {
 public:
  RuntimeCache(async::Executor executor, async::Clock& clock, CacheSettings settings);
  ~RuntimeCache();
  RuntimeCache(const RuntimeCache&) = delete;
  RuntimeCache& operator=(const RuntimeCache&) = delete;

  // Joins, starts, waits or refuses. Fails with cancelled, capacity, queue_full, draining,
  // start_failed, model_unusable or whatever the start failed with. `engine` must outlive the
  // cache's runtimes.
  async::awaitable<Result<Lease>> acquire(engine::Engine& engine, engine::StartPlan plan,
                                          std::stop_token stop);

  // acquire() and then a permit; a runtime that dies while the call waits for its permit is
  // replaced.
  async::awaitable<Result<Admission>> admit(engine::Engine& engine, engine::StartPlan plan, Ask ask,
                                            std::stop_token stop);

  std::vector<RuntimeSnapshot> snapshot() const;
  std::size_t waiting() const;  // calls that wait for a place, a load or a slot

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
    std::chrono::system_clock::time_point since{};
    std::optional<Error> last_error;
    unsigned failures = 0;
    async::TimePoint retry_at{};
  };
  struct Waiter {
    explicit Waiter(async::Executor executor) : answered(std::move(executor)) {}
    async::Event answered;
    std::optional<Error> refusal;
    std::shared_ptr<Instance> instance;  // set with a grant
  };

  Entry& entry_for(engine::Engine& engine, engine::StartPlan plan);
  std::optional<Error> refuse_beforehand(const Entry& entry) const;
  std::unique_ptr<async::Timer> place_timer(Entry& entry, TicketId ticket);
  void apply(Pool& pool, const Residency::Effects& effects);
  void carry_out(const Effect& effect);
  void answer(TicketId ticket, std::optional<Error> refusal, std::shared_ptr<Instance> instance);
  void watch_turn(Pool& pool);
  void release(EntryId entry, TicketId ticket);
  void note_death(Entry& entry, const std::shared_ptr<Instance>& instance);
  void note_failure(Entry& entry, Error error);

  async::awaitable<void> run_start(Entry& entry);
  async::awaitable<void> run_stop(Entry& entry, std::shared_ptr<Instance> instance);
  async::awaitable<void> watch_exit(Entry& entry, std::shared_ptr<Instance> instance);

  async::Executor executor_;
  async::Clock& clock_;
  CacheSettings settings_;
  async::TaskGroup tasks_;
  std::map<std::string, std::unique_ptr<Pool>> pools_;
  std::vector<std::unique_ptr<Entry>> entries_;  // index = EntryId
  std::map<TicketId, Waiter*> waiters_;
  TicketId next_ticket_ = 1;
  bool down_ = false;
};

}  // namespace werk::runtime
