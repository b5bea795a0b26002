// What people ask of a RuntimeCache: to unload, to pin, to stop what is idle; and what it tells of
// itself.
#include <fmt/ranges.h>

#include <algorithm>

#include "werk/base/log.hpp"
#include "werk/runtime/runtime_cache.hpp"

namespace werk::runtime {

using namespace std::chrono_literals;

namespace {

double seconds(async::Duration duration) { return std::chrono::duration<double>(duration).count(); }

Error capacity(std::string message, std::chrono::seconds retry_after) {
  Error error{ErrorCode::capacity, std::move(message)};
  error.retry_after = retry_after;
  return error;
}

}  // namespace

// ---- refusals

Error RuntimeCache::unloaded_error() {
  Error error{ErrorCode::unloaded, "the model was unloaded before the call had ended"};
  error.retry_after = 1s;
  return error;
}

Error RuntimeCache::no_place(const Entry& entry) const {
  if (entry.pool->residency.state(entry.id) == RuntimeState::closing) {
    return capacity(fmt::format("{} makes room or is being unloaded, and its calls have not ended; "
                                "try again when they have, or end them with `werk unload --now`",
                                entry.plan.manifest.id),
                    5s);
  }
  return capacity(fmt::format("every place for a model in the {} pool is in use; try again when a "
                              "call has ended, or raise {}",
                              entry.engine->info().pool, entry.pool->rule.setting),
                  5s);
}

Error RuntimeCache::behind_pins(const Entry& entry) const {
  constexpr auto kPeopleAreSlow = 30s;
  std::vector<std::string> names;
  for (const auto& one : entries_) {
    const bool there = one->pool->residency.state(one->id) != RuntimeState::absent;
    const bool holds = there && one->pool->residency.is_pinned(one->id);
    if (one->pool == entry.pool && holds) names.push_back(one->plan.manifest.id);
  }
  return capacity(
      fmt::format("pinned models hold every place in the {} pool ({}); `werk unpin MODEL` lets one "
                  "go, {} makes more places",
                  entry.engine->info().pool, fmt::join(names, ", "), entry.pool->rule.setting),
      kPeopleAreSlow);
}

// ---- unload and pin

bool RuntimeCache::belongs(const Entry& entry, const ModelRuntimes& which) const {
  return entry.plan.manifest.id == which.model || (which.key && entry.plan.key == *which.key);
}

async::awaitable<Result<std::size_t>> RuntimeCache::unload(ModelRuntimes which, UnloadHow how,
                                                           std::stop_token stop) {
  std::vector<std::shared_ptr<async::Event>> gone;
  for (std::size_t i = 0; i < entries_.size(); ++i) {
    Entry& entry = *entries_[i];
    Residency& residency = entry.pool->residency;
    if (!belongs(entry, which) || residency.state(entry.id) == RuntimeState::absent) continue;
    log::info("unloading {} (model {}){}", entry.plan.key.text(), entry.plan.manifest.id,
              how == UnloadHow::now ? " now" : "");
    gone.push_back(entry.gone);
    if (residency.state(entry.id) != RuntimeState::stopping)
      entry.stop_reason = telemetry::StopReason::unloaded;
    if (how == UnloadHow::now && entry.instance) entry.instance->end(unloaded_error());
    apply(*entry.pool,
          how == UnloadHow::now ? residency.unload_now(entry.id) : residency.unload(entry.id));
  }
  for (const auto& one : gone) {
    const bool is_gone = co_await one->wait(stop);
    if (!is_gone) co_return fail(ErrorCode::cancelled, "the caller left during the unload");
  }
  co_return gone.size();
}

void RuntimeCache::pin(const ModelRuntimes& which, Pinned pinned) {
  if (pinned == Pinned::yes) {
    pins_.insert(which.model);
  } else {
    pins_.erase(which.model);
  }
  for (std::size_t i = 0; i < entries_.size(); ++i) {
    Entry& entry = *entries_[i];
    if (!belongs(entry, which)) continue;
    apply(*entry.pool, entry.pool->residency.pin(entry.id, pinned));
  }
}

// ---- idle runtimes

async::Duration RuntimeCache::capacity_wait(const PoolRule& rule) const {
  return rule.capacity_wait.value_or(settings_.capacity_wait);
}

async::Duration RuntimeCache::idle_timeout(const Entry& entry) const {
  // In a turn of its own, so that a call that comes at this moment still finds it.
  if (entry.pool->rule.retention == Retention::drop) return async::Duration(1);
  const auto rule = settings_.by_model.find(entry.plan.manifest.id);
  if (rule == settings_.by_model.end()) return settings_.idle_timeout;
  return rule->second.idle_timeout.value_or(settings_.idle_timeout);
}

void RuntimeCache::watch_idle(Entry& entry) {
  const Residency& residency = entry.pool->residency;
  const async::Duration limit = idle_timeout(entry);
  const bool counts = limit > 0s && residency.is_idle(entry.id) && !residency.is_pinned(entry.id);
  if (!counts) entry.idle_timer.reset();
  if (!counts || entry.idle_timer) return;
  entry.idle_timer = clock_.call_at(clock_.now() + limit, [this, &entry, limit] {
    if (entry.pool->rule.retention == Retention::keep) {
      log::info("{} (model {}) was idle for {:.0f} s", entry.plan.key.text(),
                entry.plan.manifest.id, seconds(limit));
    }
    const bool kept = entry.pool->rule.retention == Retention::keep;
    entry.stop_reason = kept ? telemetry::StopReason::idle : telemetry::StopReason::not_kept;
    apply(*entry.pool, entry.pool->residency.idle(entry.id));
    if (entry.pool->residency.state(entry.id) != RuntimeState::stopping) entry.stop_reason.reset();
  });
}

// ---- readings

RuntimeSnapshot RuntimeCache::snapshot_of(const Entry& entry) const {
  const Residency& residency = entry.pool->residency;
  RuntimeSnapshot one;
  one.state = residency.state(entry.id);
  one.waiting = residency.waiters(entry.id);
  one.key = entry.plan.key.text();
  one.model = entry.plan.manifest.id;
  one.engine = entry.plan.key.engine;
  one.pool = entry.engine->info().pool;
  one.ownership = entry.engine->info().ownership;
  one.since = entry.since;
  one.last_used = entry.last_used;
  one.pinned = residency.is_pinned(entry.id) ? Pinned::yes : Pinned::no;
  one.progress = entry.progress;
  if (entry.start_runs) one.silent_start = clock_.now() - entry.progress_at;
  if (const async::Duration limit = idle_timeout(entry); limit > 0s) one.idle_timeout = limit;
  if (entry.last_error) one.last_error = entry.last_error->message;
  std::size_t slots = entry.plan.slots;
  if (entry.instance) {
    one.pid = entry.instance->runtime().facts().pid;
    slots = entry.instance->line().permits();
    one.slots_busy = entry.instance->line().in_use() + entry.instance->line().quarantined();
    one.waiting += entry.instance->line().waiting();
    one.usage = entry.instance->usage();
    one.load_time = entry.load_time;
    one.output_per_second = entry.instance->output_per_second();
  }
  if (slots > 0) one.slots_total = slots;
  const auto native =
      entry.instance ? entry.instance->runtime().facts().native_slots : std::nullopt;
  if (native) {
    one.slots_total = native->total;
    one.slots_busy = std::max(one.slots_busy, native->busy);
  }
  return one;
}

std::vector<RuntimeSnapshot> RuntimeCache::snapshot() const {
  std::vector<RuntimeSnapshot> all;
  for (const auto& entry : entries_) {
    RuntimeSnapshot one = snapshot_of(*entry);
    const bool worth_showing = one.state != RuntimeState::absent || one.waiting > 0;
    if (worth_showing) all.push_back(std::move(one));
  }
  return all;
}

std::vector<PoolSnapshot> RuntimeCache::pools() const {
  std::map<std::string, PoolSnapshot> all;
  for (const auto& [name, rule] : settings_.pools) all[name].capacity = rule.capacity;
  for (const auto& entry : entries_) {
    PoolSnapshot& pool = all[entry->engine->info().pool];
    const RuntimeState state = entry->pool->residency.state(entry->id);
    if (state == RuntimeState::absent) continue;
    ++pool.resident;
    if (state == RuntimeState::starting) ++pool.starting;
    if (entry->pool->residency.is_pinned(entry->id)) ++pool.pinned;
  }
  std::vector<PoolSnapshot> list;
  for (auto& [name, pool] : all) {
    pool.name = name;
    list.push_back(std::move(pool));
  }
  return list;
}

}  // namespace werk::runtime
