#include "werk/runtime/residency.hpp"

#include <algorithm>
#include <limits>

#include "werk/base/assert.hpp"

// The simulation compiles this file a second time with faults that can be switched on, to prove
// that it would notice them.
#ifndef WERK_FAULT
#define WERK_FAULT(name) false
#endif

namespace werk::runtime {

using State = RuntimeState;

std::string_view name_of(RuntimeState state) {
  switch (state) {
    case State::absent: return "absent";
    case State::starting: return "starting";
    case State::ready: return "ready";
    case State::closing: return "closing";
    case State::stopping: return "stopping";
  }
  return "absent";
}

// ---- events

Residency::Effects Residency::arrive(TicketId ticket, KeyId key) {
  WERK_ASSERT(!tickets_.contains(ticket));
  Effects effects;
  if (down_ && !WERK_FAULT(start_after_shutdown)) {
    effects.push_back({Effect::Kind::reject_shutdown, key, ticket});
    return effects;
  }
  tickets_[ticket] = Ticket{key, Holding::waiting};
  line_.push_back(ticket);
  ++keys_[key].waiters;
  settle(effects);
  return effects;
}

Residency::Effects Residency::cancel(TicketId ticket) {
  Effects effects;
  const auto found = tickets_.find(ticket);
  if (found == tickets_.end() || found->second.holding != Holding::waiting) return effects;
  if (WERK_FAULT(cancelled_waiter_keeps_pin) && keys_[found->second.key].state == State::starting)
    return effects;
  leave_line(ticket);
  tickets_.erase(ticket);
  settle(effects);
  return effects;
}

Residency::Effects Residency::release(TicketId ticket) {
  Effects effects;
  const auto found = tickets_.find(ticket);
  WERK_ASSERT(found != tickets_.end() && found->second.holding != Holding::waiting);
  Key& key = keys_[found->second.key];
  if (found->second.holding == Holding::leased) {
    WERK_ASSERT(key.leases > 0);
    --key.leases;
    if (WERK_FAULT(double_release) && key.leases > 0) --key.leases;
  }
  tickets_.erase(found);
  settle(effects);
  return effects;
}

Residency::Effects Residency::ready(KeyId key) {
  WERK_ASSERT(state(key) == State::starting);
  Effects effects;
  keys_[key].state = State::ready;
  touch(key);
  settle(effects);
  return effects;
}

Residency::Effects Residency::failed(KeyId key) {
  WERK_ASSERT(state(key) == State::starting);
  Effects effects;
  keys_[key].state = State::absent;
  keys_[key].unloading = false;
  if (WERK_FAULT(waiter_lost_on_failed_start)) {
    Effects lost;
    reject_waiters(key, Effect::Kind::reject_failed, lost);
  } else {
    reject_waiters(key, Effect::Kind::reject_failed, effects);
  }
  settle(effects);
  return effects;
}

Residency::Effects Residency::exited(KeyId key) {
  WERK_ASSERT(state(key) == State::ready || state(key) == State::closing);
  Effects effects;
  keys_[key].state = State::absent;
  keys_[key].unloading = false;
  orphan_leases(key);
  drop_lru(key);
  settle(effects);
  return effects;
}

Residency::Effects Residency::stopped(KeyId key) {
  WERK_ASSERT(state(key) == State::stopping);
  Effects effects;
  keys_[key].state = State::absent;
  settle(effects);
  return effects;
}

Residency::Effects Residency::turn() {
  Effects effects;
  turned_ = true;
  settle(effects);
  return effects;
}

Residency::Effects Residency::shutdown() {
  Effects effects;
  if (down_) return effects;
  down_ = true;
  for (const TicketId ticket : std::vector<TicketId>(line_)) {
    effects.push_back({Effect::Kind::reject_shutdown, tickets_[ticket].key, ticket});
    leave_line(ticket);
    tickets_.erase(ticket);
  }
  settle(effects);
  return effects;
}

Residency::Effects Residency::stop_leased() {
  WERK_ASSERT(down_);
  Effects effects;
  for (auto& [id, key] : keys_) {
    if (key.state == State::ready || key.state == State::closing) orphan_leases(id);
  }
  settle(effects);
  return effects;
}

Residency::Effects Residency::unload(KeyId key) {
  Effects effects;
  Key& leaving = keys_[key];
  const bool alive = leaving.state == State::starting || leaving.state == State::ready ||
                     leaving.state == State::closing;
  if (!alive) return effects;
  if (WERK_FAULT(unload_forgotten_while_starting) && leaving.state == State::starting)
    return effects;
  leaving.unloading = true;
  if (WERK_FAULT(unload_cuts_calls)) stop_key(key, effects);
  settle(effects);
  return effects;
}

Residency::Effects Residency::unload_now(KeyId key) {
  Effects effects;
  const State before = state(key);
  if (before == State::absent || before == State::stopping) return effects;
  if (before == State::starting && !WERK_FAULT(unload_now_leaves_waiters))
    reject_waiters(key, Effect::Kind::reject_unloaded, effects);
  if (!WERK_FAULT(unload_now_keeps_leases)) orphan_leases(key);
  stop_key(key, effects);
  settle(effects);
  return effects;
}

Residency::Effects Residency::pin(KeyId key, Pinned pinned) {
  Effects effects;
  Key& kept = keys_[key];
  kept.pinned = pinned;
  // It was to make room for others, which a pinned one doesn't.
  const bool reopens = pinned == Pinned::yes && kept.state == State::closing && !kept.unloading;
  if (reopens) kept.state = State::ready;
  settle(effects);
  return effects;
}

Residency::Effects Residency::idle(KeyId key) {
  Effects effects;
  const bool stops = (is_idle(key) || WERK_FAULT(idle_with_a_lease)) &&
                     state(key) == State::ready &&
                     (!is_pinned(key) || WERK_FAULT(idle_though_pinned));
  if (!stops) return effects;
  stop_key(key, effects);
  settle(effects);
  return effects;
}

// ---- the policy

void Residency::settle(Effects& effects) {
  if (down_ && !WERK_FAULT(start_after_shutdown)) {
    settle_shutdown(effects);
  } else {
    reopen_if_nobody_needs();
    if (WERK_FAULT(victim_with_a_waiter)) choose_victims(effects);
    grant_ready(effects);
    close_unloaded(effects);
    give_places(effects);
    choose_victims(effects);
    close_after_turn();
    stop_closed(effects);
    if (!WERK_FAULT(waiting_behind_pins)) refuse_behind_pins(effects);
    if (when_full_ == WhenFull::refuse) refuse_unserved(effects);
  }
  check();
}

void Residency::settle_shutdown(Effects& effects) {
  for (auto& [id, key] : keys_) {
    const bool alive =
        key.state == State::starting || key.state == State::ready || key.state == State::closing;
    if (alive && key.leases == 0) stop_key(id, effects);
  }
}

void Residency::reopen_if_nobody_needs() {
  if (!needed_keys().empty()) return;
  turned_ = false;
  for (auto& [id, key] : keys_) {
    const bool stays_closed = key.unloading && !WERK_FAULT(unloading_reopens);
    if (key.state == State::closing && !stays_closed) key.state = State::ready;
  }
}

void Residency::grant_ready(Effects& effects) {
  for (const TicketId ticket : std::vector<TicketId>(line_)) {
    Ticket& holder = tickets_[ticket];
    if (keys_[holder.key].state != State::ready) continue;
    leave_line(ticket);
    holder.holding = Holding::leased;
    ++keys_[holder.key].leases;
    touch(holder.key);
    effects.push_back({Effect::Kind::grant, holder.key, ticket});
  }
}

// What is to be unloaded serves nobody who comes from now on; a start that nobody waits for any
// more has no reason left.
void Residency::close_unloaded(Effects& effects) {
  for (auto& [id, key] : keys_) {
    if (!key.unloading || WERK_FAULT(unloading_reopens)) continue;
    if (key.state == State::ready) key.state = State::closing;
    if (key.state == State::starting && key.waiters == 0) stop_key(id, effects);
  }
}

void Residency::give_places(Effects& effects) {
  for (const KeyId key : needed_keys()) {
    if (free_places() == 0) return;
    keys_[key].state = State::starting;
    turned_ = false;
    effects.push_back({Effect::Kind::start, key});
    if (WERK_FAULT(two_starts_on_one_key)) effects.push_back({Effect::Kind::start, key});
  }
}

void Residency::choose_victims(Effects& effects) {
  const std::size_t needed = needed_keys().size();
  std::size_t coming = free_places();
  if (coming >= needed) return;
  coming += count(State::stopping);
  for (; coming < needed; ++coming) {
    const auto idle = std::ranges::find_if(lru_, [&](KeyId id) {
      const Key& key = keys_[id];
      return key.state == State::ready && key.leases == 0 &&
             (key.pinned == Pinned::no || WERK_FAULT(pinned_victim)) &&
             (key.waiters == 0 || WERK_FAULT(victim_with_a_waiter));
    });
    if (idle == lru_.end()) return;
    stop_key(*idle, effects);
  }
}

void Residency::close_after_turn() {
  if (!turned_ || needed_keys().empty() || WERK_FAULT(no_fair_turn)) return;
  if (count(State::stopping) + closing_for_others() > 0) return;
  const auto busy = std::ranges::find_if(lru_, [&](KeyId id) {
    return keys_[id].state == State::ready && keys_[id].pinned == Pinned::no;
  });
  if (busy != lru_.end()) keys_[*busy].state = State::closing;
}

void Residency::stop_closed(Effects& effects) {
  for (auto& [id, key] : keys_) {
    if (key.state != State::closing) continue;
    if (key.leases == 0 || WERK_FAULT(active_only_when_ready)) stop_key(id, effects);
  }
}

void Residency::refuse_unserved(Effects& effects) {
  const std::vector<KeyId> needed = needed_keys();
  const std::size_t free = free_places();
  if (free >= needed.size()) return;
  const std::size_t coming = free + count(State::stopping) + closing_for_others();
  for (std::size_t i = coming; i < needed.size(); ++i) {
    reject_waiters(needed[i], Effect::Kind::reject_capacity, effects);
  }
}

// No time frees a place that a pin holds, so nobody is left to wait for it.
void Residency::refuse_behind_pins(Effects& effects) {
  if (capacity_ == 0 || held_by_pins() < capacity_) return;
  for (const KeyId key : needed_keys()) reject_waiters(key, Effect::Kind::reject_pinned, effects);
}

// ---- small parts

void Residency::leave_line(TicketId ticket) {
  const auto place = std::ranges::find(line_, ticket);
  WERK_ASSERT(place != line_.end());
  line_.erase(place);
  --keys_[tickets_[ticket].key].waiters;
}

void Residency::reject_waiters(KeyId key, Effect::Kind kind, Effects& effects) {
  for (const TicketId ticket : std::vector<TicketId>(line_)) {
    if (tickets_[ticket].key != key) continue;
    leave_line(ticket);
    tickets_.erase(ticket);
    effects.push_back({kind, key, ticket});
  }
}

void Residency::stop_key(KeyId key, Effects& effects) {
  keys_[key].state = State::stopping;
  keys_[key].unloading = false;
  if (WERK_FAULT(pin_lost_on_stop)) keys_[key].pinned = Pinned::no;
  drop_lru(key);
  effects.push_back({Effect::Kind::stop, key});
}

void Residency::orphan_leases(KeyId key) {
  keys_[key].leases = 0;
  for (auto& [id, ticket] : tickets_) {
    if (ticket.key == key && ticket.holding == Holding::leased) ticket.holding = Holding::orphaned;
  }
}

void Residency::drop_lru(KeyId key) { std::erase(lru_, key); }

void Residency::touch(KeyId key) {
  drop_lru(key);
  lru_.push_back(key);
}

std::vector<KeyId> Residency::needed_keys() const {
  std::vector<KeyId> needed;
  for (const TicketId ticket : line_) {
    const KeyId key = tickets_.at(ticket).key;
    if (state(key) == State::absent && std::ranges::find(needed, key) == needed.end())
      needed.push_back(key);
  }
  return needed;
}

std::size_t Residency::count(RuntimeState wanted) const {
  return static_cast<std::size_t>(std::ranges::count_if(
      keys_, [&](const auto& entry) { return entry.second.state == wanted; }));
}

// Closing after a fair turn. What is closing to be unloaded may take as long as its calls, so no
// other decision counts on its place.
std::size_t Residency::closing_for_others() const {
  return static_cast<std::size_t>(std::ranges::count_if(keys_, [](const auto& entry) {
    return entry.second.state == State::closing && !entry.second.unloading;
  }));
}

std::size_t Residency::held_by_pins() const {
  return static_cast<std::size_t>(std::ranges::count_if(keys_, [](const auto& entry) {
    const Key& key = entry.second;
    const bool holds = key.state == State::starting || key.state == State::ready;
    return holds && key.pinned == Pinned::yes && !key.unloading;
  }));
}

std::size_t Residency::occupied() const {
  const std::size_t stopping = WERK_FAULT(capacity_forgets_stopping) ? 0 : count(State::stopping);
  return count(State::starting) + count(State::ready) + count(State::closing) + stopping;
}

std::size_t Residency::free_places() const {
  if (capacity_ == 0) return std::numeric_limits<std::size_t>::max();
  const std::size_t used = occupied();
  return capacity_ > used ? capacity_ - used : 0;
}

// ---- readings

RuntimeState Residency::state(KeyId key) const {
  const auto found = keys_.find(key);
  return found == keys_.end() ? State::absent : found->second.state;
}

std::size_t Residency::leases(KeyId key) const {
  const auto found = keys_.find(key);
  return found == keys_.end() ? 0 : found->second.leases;
}

std::size_t Residency::waiters(KeyId key) const {
  const auto found = keys_.find(key);
  return found == keys_.end() ? 0 : found->second.waiters;
}

bool Residency::is_pinned(KeyId key) const {
  const auto found = keys_.find(key);
  return found != keys_.end() && found->second.pinned == Pinned::yes;
}

bool Residency::is_idle(KeyId key) const {
  return state(key) == State::ready && leases(key) == 0 && waiters(key) == 0;
}

std::optional<TicketId> Residency::blocked_head() const {
  if (down_ || free_places() > 0 || count(State::stopping) + closing_for_others() > 0)
    return std::nullopt;
  for (const TicketId ticket : line_) {
    if (state(tickets_.at(ticket).key) == State::absent) return ticket;
  }
  return std::nullopt;
}

bool Residency::waits_for_place(TicketId ticket) const {
  const auto found = tickets_.find(ticket);
  if (found == tickets_.end() || found->second.holding != Holding::waiting) return false;
  return state(found->second.key) != State::starting;
}

std::string Residency::fingerprint() const {
  std::string text;
  for (const auto& [id, key] : keys_) {
    const bool pinned = key.pinned == Pinned::yes;
    if (key.state == State::absent && key.leases == 0 && key.waiters == 0 && !pinned) continue;
    text += std::to_string(id) + ":" + std::string(name_of(key.state)) +
            std::to_string(key.leases) + (pinned ? "p" : "") + (key.unloading ? "u" : "") + ";";
  }
  text += "|";
  for (const TicketId ticket : line_)
    text += std::to_string(ticket) + "@" + std::to_string(tickets_.at(ticket).key) + ";";
  text += "|";
  for (const auto& [id, ticket] : tickets_) {
    if (ticket.holding == Holding::waiting) continue;
    text += std::to_string(id) + "@" + std::to_string(ticket.key);
    text += ticket.holding == Holding::leased ? "l;" : "o;";
  }
  text += "|";
  for (const KeyId key : lru_) text += std::to_string(key) + ";";
  text += turned_ ? "t" : "";
  text += down_ ? "d" : "";
  return text;
}

void Residency::check() const {
  if (WERK_FAULT(any)) return;  // a planted fault is for the explorer to find
  WERK_ASSERT(capacity_ == 0 || occupied() <= capacity_);
  for (const TicketId ticket : line_) {
    const State waited = state(tickets_.at(ticket).key);
    WERK_ASSERT(waited != State::ready && !down_);
    WERK_ASSERT(waited != State::absent || capacity_ != 0);
  }
  for (const auto& [id, key] : keys_) {
    WERK_ASSERT(key.leases == 0 || key.state == State::ready || key.state == State::closing);
  }
}

}  // namespace werk::runtime
