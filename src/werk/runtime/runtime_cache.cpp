#include "werk/runtime/runtime_cache.hpp"

#include <algorithm>
#include <functional>
#include <utility>

#include "werk/base/assert.hpp"
#include "werk/base/log.hpp"

namespace werk::runtime {

using namespace std::chrono_literals;

namespace {

constexpr auto kFirstBackOff = 1s;
constexpr auto kLongestBackOff = 30s;

Error refused(ErrorCode code, std::string message, std::chrono::seconds retry_after) {
  Error error{code, std::move(message)};
  error.retry_after = retry_after;
  return error;
}

Error draining() { return refused(ErrorCode::draining, "the node is shutting down", 5s); }

double seconds(async::Duration duration) { return std::chrono::duration<double>(duration).count(); }

// A start without progress for the start time-out is given up; each sign of life begins the limit
// anew, and is passed on.
class StartLimit final : public engine::StartObserver {
 public:
  using Tell = std::function<void(std::string_view what)>;
  StartLimit(async::Clock& clock, async::Duration limit, Tell tell, std::stop_token stop)
      : deadline_(clock, limit, stop), tell_(std::move(tell)) {}
  void progressed(std::string_view what) override {
    deadline_.restart();
    tell_(what);
  }
  std::stop_token token() const { return deadline_.token(); }
  bool expired() const { return deadline_.expired(); }

 private:
  async::Deadline deadline_;
  Tell tell_;
};

}  // namespace

RuntimeCache::RuntimeCache(async::Executor executor, async::Clock& clock, CacheSettings settings)
    : executor_(executor),
      clock_(clock),
      settings_(std::move(settings)),
      tasks_(std::move(executor)) {
  has_idle_timeouts_ = settings_.idle_timeout > 0s;
  for (const auto& [model, rule] : settings_.by_model) {
    if (rule.pinned == Pinned::yes) pins_.insert(model);
    if (rule.idle_timeout.value_or(0s) > 0s) has_idle_timeouts_ = true;
  }
  for (const auto& [name, rule] : settings_.pools) {
    if (rule.retention == Retention::drop) has_idle_timeouts_ = true;
  }
}

RuntimeCache::~RuntimeCache() { WERK_ASSERT(waiters_.empty()); }

// ---- callers

async::awaitable<Result<Lease>> RuntimeCache::acquire(engine::Engine& engine,
                                                      const engine::StartPlan& plan,
                                                      std::stop_token stop,
                                                      WaitObserver* observer) {
  if (down_) co_return fail(draining());
  Entry& entry = entry_for(engine, plan);
  if (std::optional<Error> refusal = refuse_beforehand(entry)) co_return fail(std::move(*refusal));
  const TicketId ticket = next_ticket_++;
  Waiter waiter(executor_, entry, observer);
  waiters_[ticket] = &waiter;
  apply(*entry.pool, entry.pool->residency.arrive(ticket, entry.id));
  tell_waiter(ticket);
  std::unique_ptr<async::Timer> timer;
  if (!waiter.answered.is_set()) timer = place_timer(entry, ticket);
  const bool answered = co_await waiter.answered.wait(stop);
  waiters_.erase(ticket);
  if (!answered) {
    apply(*entry.pool, entry.pool->residency.cancel(ticket));
    co_return fail(ErrorCode::cancelled, "the caller left while it waited for the model");
  }
  if (waiter.refusal) co_return fail(std::move(*waiter.refusal));
  co_return Lease(*this, std::move(waiter.instance), entry.id, ticket);
}

async::awaitable<Result<Admission>> RuntimeCache::admit(engine::Engine& engine,
                                                        const engine::StartPlan& plan, Ask ask,
                                                        std::stop_token stop) {
  constexpr int kTries = 3;  // each try meets a runtime that died while the call stood in its line
  const Usage one_call{.calls = 1};
  for (int attempt = 1;; ++attempt) {
    Result<Lease> lease = co_await acquire(engine, plan, stop, ask.observer);
    if (!lease) co_return pass_on(lease);
    if (ask.observer != nullptr) ask.observer->waits_for(WaitFor::slot);
    Result<Permit> permit = co_await lease->permit(ask.weight, ask.client, stop);
    if (permit) {
      lease->add_usage(one_call);
      co_return Admission{std::move(*lease), std::move(*permit)};
    }
    if (permit.error().code != ErrorCode::engine_failed || attempt == kTries)
      co_return pass_on(permit);
  }
}

RuntimeCache::Entry& RuntimeCache::entry_for(engine::Engine& engine,
                                             const engine::StartPlan& plan) {
  const bool is_pinned = pins_.contains(plan.manifest.id);
  Entry& entry = known_or_new(engine, plan);
  Residency& residency = entry.pool->residency;
  if (is_pinned && !residency.is_pinned(entry.id))
    apply(*entry.pool, residency.pin(entry.id, Pinned::yes));
  return entry;
}

RuntimeCache::Entry& RuntimeCache::known_or_new(engine::Engine& engine,
                                                const engine::StartPlan& plan) {
  const auto known = std::ranges::find_if(
      entries_, [&](const auto& entry) { return entry->plan.key == plan.key; });
  if (known != entries_.end()) {
    Entry& entry = **known;
    const RuntimeState state = entry.pool->residency.state(entry.id);
    // The newest description of the same runtime: a model may have been imported anew under another
    // name or path.
    if (state == RuntimeState::absent) entry.plan = plan;
    return entry;
  }
  const std::string& pool_name = engine.info().pool;
  auto& pool = pools_[pool_name];
  if (!pool) {
    const auto set = settings_.pools.find(pool_name);
    const PoolRule rule = set == settings_.pools.end() ? PoolRule() : set->second;
    const WhenFull when_full = capacity_wait(rule) > 0s ? WhenFull::wait : WhenFull::refuse;
    pool = std::make_unique<Pool>(
        Pool{rule, Residency(rule.capacity, when_full), nullptr, std::nullopt});
  }
  auto entry = std::make_unique<Entry>();
  entry->id = static_cast<EntryId>(entries_.size());
  entry->engine = &engine;
  entry->plan = plan;
  entry->pool = pool.get();
  entries_.push_back(std::move(entry));
  return *entries_.back();
}

std::optional<Error> RuntimeCache::refuse_beforehand(const Entry& entry) const {
  const Residency& residency = entry.pool->residency;
  const std::size_t permit_line = entry.instance ? entry.instance->line().waiting() : 0;
  const std::size_t waiting_now = residency.waiters(entry.id) + permit_line;
  if (waiting_now >= settings_.waiting_max) {
    return refused(ErrorCode::queue_full,
                   fmt::format("{} calls already wait for this model", waiting_now), 2s);
  }
  const bool backs_off = residency.state(entry.id) == RuntimeState::absent && entry.failures > 0 &&
                         clock_.now() < entry.retry_at;
  if (!backs_off) return std::nullopt;
  Error error = *entry.last_error;
  if (error.code != ErrorCode::model_unusable) {
    error.retry_after = std::chrono::ceil<std::chrono::seconds>(entry.retry_at - clock_.now());
  }
  return error;
}

std::unique_ptr<async::Timer> RuntimeCache::place_timer(Entry& entry, TicketId ticket) {
  const async::Duration limit = capacity_wait(entry.pool->rule);
  if (limit <= 0s) return nullptr;
  return clock_.call_at(clock_.now() + limit, [this, &entry, ticket] {
    if (!entry.pool->residency.waits_for_place(ticket)) return;
    Error refusal = no_place(entry);
    const Residency::Effects effects = entry.pool->residency.cancel(ticket);
    answer(ticket, std::move(refusal), nullptr);
    apply(*entry.pool, effects);
  });
}

// ---- carrying out

void RuntimeCache::apply(Pool& pool, const Residency::Effects& effects) {
  for (const Effect& effect : effects) carry_out(effect);
  watch_turn(pool);
  if (!has_idle_timeouts_) return;
  for (const auto& entry : entries_) {
    if (entry->pool == &pool) watch_idle(*entry);
  }
}

void RuntimeCache::carry_out(const Effect& effect) {
  Entry& entry = *entries_[effect.key];
  switch (effect.kind) {
    case Effect::Kind::start:
      entry.since = std::chrono::system_clock::now();
      entry.gone = std::make_shared<async::Event>(executor_);
      entry.start_stop = std::stop_source();
      entry.start_runs = true;
      entry.progress_at = clock_.now();
      if (sink_ != nullptr) sink_->starting(name_of(entry));
      tasks_.spawn(run_start(entry));
      for (const auto& [ticket, waiter] : waiters_) {
        if (&waiter->entry == &entry) tell_waiter(ticket);
      }
      return;
    case Effect::Kind::stop:
      entry.since = std::chrono::system_clock::now();
      entry.stop_reason = down_ ? telemetry::StopReason::shutdown
                                : entry.stop_reason.value_or(telemetry::StopReason::capacity);
      if (sink_ != nullptr) sink_->stopping(name_of(entry), *entry.stop_reason);
      if (entry.start_runs) {
        entry.start_stop.request_stop();  // run_start reports the end
      } else {
        tasks_.spawn(run_stop(entry, entry.instance));
      }
      return;
    case Effect::Kind::grant:
      entry.last_used = std::chrono::system_clock::now();
      return answer(effect.ticket, std::nullopt, entry.instance);
    case Effect::Kind::reject_failed: return answer(effect.ticket, entry.last_error, nullptr);
    case Effect::Kind::reject_capacity: return answer(effect.ticket, no_place(entry), nullptr);
    case Effect::Kind::reject_pinned: return answer(effect.ticket, behind_pins(entry), nullptr);
    case Effect::Kind::reject_unloaded: return answer(effect.ticket, unloaded_error(), nullptr);
    case Effect::Kind::reject_shutdown: return answer(effect.ticket, draining(), nullptr);
  }
}

void RuntimeCache::answer(TicketId ticket, std::optional<Error> refusal,
                          std::shared_ptr<Instance> instance) {
  const auto waiter = waiters_.find(ticket);
  WERK_ASSERT(waiter != waiters_.end());
  waiter->second->refusal = std::move(refusal);
  waiter->second->instance = std::move(instance);
  waiter->second->answered.set();
}

void RuntimeCache::tell_waiter(TicketId ticket) const {
  const Waiter& waiter = *waiters_.at(ticket);
  if (waiter.observer == nullptr || waiter.answered.is_set()) return;
  const bool for_place = waiter.entry.pool->residency.waits_for_place(ticket);
  waiter.observer->waits_for(for_place ? WaitFor::place : WaitFor::load);
}

void RuntimeCache::tell_stopped(Entry& entry) const {
  const auto reason =
      std::exchange(entry.stop_reason, std::nullopt).value_or(telemetry::StopReason::capacity);
  if (sink_ != nullptr) sink_->stopped(name_of(entry), reason);
}

telemetry::RuntimeName RuntimeCache::name_of(const Entry& entry) {
  return {entry.plan.key.text(), entry.plan.manifest.id, entry.plan.key.engine,
          entry.engine->info().pool};
}

void RuntimeCache::watch_turn(Pool& pool) {
  const std::optional<TicketId> head = pool.residency.blocked_head();
  if (head == pool.turn_of) return;
  pool.turn_of = head;
  pool.turn_timer.reset();
  if (!head) return;
  pool.turn_timer = clock_.call_at(clock_.now() + settings_.fair_turn, [this, &pool] {
    if (pool.residency.blocked_head() != pool.turn_of) return;
    apply(pool, pool.residency.turn());
  });
}

void RuntimeCache::release(EntryId id, TicketId ticket) {
  Pool& pool = *entries_[id]->pool;
  entries_[id]->last_used = std::chrono::system_clock::now();
  apply(pool, pool.residency.release(ticket));
}

// ---- starts, stops, deaths

async::awaitable<void> RuntimeCache::run_start(Entry& entry) {
  const async::TimePoint begun = clock_.now();
  const std::string name = entry.plan.key.text();
  log::info("starting {} for model {}", name, entry.plan.manifest.id);
  const StartLimit::Tell note = [this, &entry](std::string_view what) {
    note_progress(entry, what);
  };
  StartLimit limit(clock_, settings_.start_timeout, note, entry.start_stop.get_token());
  Result<std::unique_ptr<engine::Runtime>> started =
      co_await entry.engine->start(entry.plan, limit, limit.token());
  entry.start_runs = false;
  entry.progress.clear();
  Residency& residency = entry.pool->residency;
  if (residency.state(entry.id) == RuntimeState::stopping) {
    if (started) co_await (*started)->stop(settings_.stop_grace);
    entry.gone->set();
    tell_stopped(entry);
    apply(*entry.pool, residency.stopped(entry.id));
    co_return;
  }
  if (!started) {
    Error error =
        limit.expired()
            ? Error{ErrorCode::start_failed,
                    fmt::format("the engine showed no progress for {:.0f} s (--start-timeout)",
                                seconds(settings_.start_timeout)),
                    Origin::engine}
            : std::move(started.error());
    note_failure(entry, std::move(error));
    entry.gone->set();
    apply(*entry.pool, residency.failed(entry.id));
    co_return;
  }
  entry.failures = 0;
  entry.last_error.reset();
  entry.since = std::chrono::system_clock::now();
  entry.load_time = clock_.now() - begun;
  entry.instance = std::make_shared<Instance>(std::move(*started), clock_, tasks_, executor_,
                                              settings_.waiting_max);
  tasks_.spawn(watch_exit(entry, entry.instance));
  const std::size_t slots = entry.instance->runtime().facts().slots;
  log::info("{} is ready after {:.2f} s{}", name, seconds(entry.load_time),
            slots > 0 ? fmt::format(" with {} slot(s)", slots) : "");
  if (sink_ != nullptr) sink_->ready(name_of(entry), entry.load_time, slots);
  apply(*entry.pool, residency.ready(entry.id));
}

void RuntimeCache::note_progress(Entry& entry, std::string_view what) {
  entry.progress_at = clock_.now();
  if (entry.progress == what) return;
  entry.progress = what;
  if (sink_ != nullptr) sink_->progressed(name_of(entry), what);
}

void RuntimeCache::note_failure(Entry& entry, Error error) {
  const auto pause = std::min<async::Duration>(kFirstBackOff * (1u << std::min(entry.failures, 5u)),
                                               kLongestBackOff);
  ++entry.failures;
  entry.retry_at = clock_.now() + pause;
  if (error.code != ErrorCode::model_unusable) {
    error.retry_after = std::chrono::ceil<std::chrono::seconds>(pause);
  }
  log::warn("{} did not start: {}", entry.plan.key.text(), error.message);
  entry.stop_reason.reset();
  if (sink_ != nullptr) sink_->start_failed(name_of(entry), error);
  entry.last_error = std::move(error);
}

async::awaitable<void> RuntimeCache::run_stop(Entry& entry, std::shared_ptr<Instance> instance) {
  log::info("stopping {} (model {})", entry.plan.key.text(), entry.plan.manifest.id);
  co_await instance->runtime().stop(settings_.stop_grace);
  instance->mark_dead();
  entry.instance.reset();
  entry.gone->set();
  tell_stopped(entry);
  apply(*entry.pool, entry.pool->residency.stopped(entry.id));
}

async::awaitable<void> RuntimeCache::watch_exit(Entry& entry, std::shared_ptr<Instance> instance) {
  co_await instance->runtime().exited().wait();
  note_death(entry, instance);
}

void RuntimeCache::note_death(Entry& entry, const std::shared_ptr<Instance>& instance) {
  Residency& residency = entry.pool->residency;
  const RuntimeState state = residency.state(entry.id);
  const bool expected = state != RuntimeState::ready && state != RuntimeState::closing;
  if (expected || entry.instance != instance) return;  // it was told to stop, or its death is known
  const std::string how = instance->runtime().exit_reason();
  log::warn("{} died: {}", entry.plan.key.text(), how);
  entry.stop_reason.reset();
  if (sink_ != nullptr) sink_->died(name_of(entry), how);
  instance->mark_dead();
  entry.instance.reset();
  entry.gone->set();
  apply(*entry.pool, residency.exited(entry.id));
}

void RuntimeCache::condemn(Entry& entry, const std::shared_ptr<Instance>& instance, Error cause) {
  Residency& residency = entry.pool->residency;
  const RuntimeState state = residency.state(entry.id);
  const bool on_its_way = state != RuntimeState::ready && state != RuntimeState::closing;
  if (on_its_way || entry.instance != instance) return;
  log::warn("{}: {}", entry.plan.key.text(), cause.message);
  // Who waits for its turn has lost nothing and goes to the next one; who runs is told.
  instance->mark_dead();
  instance->end(std::move(cause));
  entry.stop_reason = telemetry::StopReason::silent;
  apply(*entry.pool, residency.unload_now(entry.id));
}

// ---- shutdown

void RuntimeCache::begin_shutdown() {
  if (down_) return;
  down_ = true;
  for (const auto& entry : entries_) {
    if (entry->instance) entry->instance->refuse_waiting();
  }
  for (const auto& [name, pool] : pools_) apply(*pool, pool->residency.shutdown());
}

void RuntimeCache::stop_leased() {
  for (const auto& [name, pool] : pools_) apply(*pool, pool->residency.stop_leased());
}

async::awaitable<void> RuntimeCache::stopped() {
  WERK_ASSERT(down_);
  co_await tasks_.join();
}

// ---- readings

Waits RuntimeCache::waits() const {
  Waits waits;
  for (const auto& [ticket, waiter] : waiters_) {
    const bool for_place = waiter->entry.pool->residency.waits_for_place(ticket);
    ++(for_place ? waits.place : waits.load);
  }
  for (const auto& entry : entries_) {
    if (entry->instance) waits.slot += entry->instance->line().waiting();
  }
  return waits;
}

}  // namespace werk::runtime
