#include "tests/sim/residency_world.hpp"

#include <algorithm>

namespace werk::test {

using runtime::Effect;
using runtime::KeyId;
using runtime::RuntimeState;
using Kind = WorldEvent::Kind;

std::string WorldEvent::text() const {
  constexpr std::string_view kNames[] = {"arrive", "cancel",     "end",  "ready",    "fail",
                                         "exit",   "stopped",    "turn", "shutdown", "stop_leased",
                                         "unload", "unload_now", "pin",  "unpin",    "idle"};
  const std::string name(kNames[static_cast<std::size_t>(kind)]);
  switch (kind) {
    case Kind::arrive:
      return name + " caller " + std::to_string(caller) + " key " + std::to_string(key);
    case Kind::cancel:
    case Kind::end: return name + " caller " + std::to_string(caller);
    case Kind::turn:
    case Kind::shutdown:
    case Kind::stop_leased: return name;
    default: return name + " key " + std::to_string(key);
  }
}

std::string WorldShape::text() const {
  return std::to_string(keys) + " keys, " + std::to_string(callers) + " callers, capacity " +
         std::to_string(capacity) + (when_full == runtime::WhenFull::wait ? ", wait" : ", refuse") +
         ", " + std::to_string(acts) + " acts";
}

ResidencyWorld::ResidencyWorld(WorldShape shape)
    : shape_(shape),
      residency_(shape.capacity, shape.when_full),
      callers_(shape.callers),
      bodies_(shape.keys, Body::none),
      answers_(shape.callers, 0),
      unloading_(shape.keys, false),
      pinned_(shape.keys, false),
      acts_left_(shape.acts) {}

std::vector<WorldEvent> ResidencyWorld::possible() const {
  std::vector<WorldEvent> events;
  for (std::size_t c = 0; c < callers_.size(); ++c) {
    if (callers_[c].state == Caller::State::idle) {
      for (KeyId k = 0; k < shape_.keys; ++k) events.push_back({Kind::arrive, c, k});
    } else if (callers_[c].state == Caller::State::waiting) {
      events.push_back({Kind::cancel, c});
    } else {
      events.push_back({Kind::end, c, 0, true});
    }
  }
  for (KeyId k = 0; k < shape_.keys; ++k) {
    if (bodies_[k] == Body::starting) {
      events.push_back({Kind::ready, 0, k, true});
      events.push_back({Kind::fail, 0, k});
    } else if (bodies_[k] == Body::up) {
      events.push_back({Kind::exit, 0, k});
    } else if (bodies_[k] == Body::stopping) {
      events.push_back({Kind::stopped, 0, k, true});
    }
  }
  add_acts(events);
  if (residency_.blocked_head() && !turned_) events.push_back({Kind::turn, 0, 0, true});
  if (!down_) events.push_back({Kind::shutdown});
  if (down_ && !forced_) events.push_back({Kind::stop_leased});
  return events;
}

void ResidencyWorld::add_acts(std::vector<WorldEvent>& events) const {
  if (down_) return;
  for (KeyId k = 0; k < shape_.keys; ++k) {
    if (bodies_[k] == Body::up && shape_.acts > 0) events.push_back({Kind::idle, 0, k});
    if (acts_left_ == 0) continue;
    events.push_back({pinned_[k] ? Kind::unpin : Kind::pin, 0, k});
    if (bodies_[k] != Body::up && bodies_[k] != Body::starting) continue;
    events.push_back({Kind::unload, 0, k});
    events.push_back({Kind::unload_now, 0, k});
  }
}

runtime::Residency::Effects ResidencyWorld::act(const WorldEvent& event) {
  const KeyId key = event.key;
  if (event.kind != Kind::idle) --acts_left_;
  switch (event.kind) {
    case Kind::unload: unloading_[key] = true; return residency_.unload(key);
    case Kind::unload_now:
      stopped_at_once_ = key;
      for (Caller& other : callers_) {
        if (other.state == Caller::State::running && other.key == key) other.orphan = true;
      }
      return residency_.unload_now(key);
    case Kind::pin: pinned_[key] = true; return residency_.pin(key, runtime::Pinned::yes);
    case Kind::unpin: pinned_[key] = false; return residency_.pin(key, runtime::Pinned::no);
    default: idle_ = key; return residency_.idle(key);
  }
}

void ResidencyWorld::begin_event() {
  std::ranges::fill(answers_, 0u);
  states_before_.clear();
  closed_before_.clear();
  for (KeyId k = 0; k < shape_.keys; ++k) {
    states_before_.push_back(residency_.state(k));
    closed_before_.push_back(unloading_[k] && bodies_[k] == Body::up);
  }
  stopped_at_once_.reset();
  idle_.reset();
}

std::optional<std::string> ResidencyWorld::happen(const WorldEvent& event) {
  begin_event();
  const std::vector<Caller> before = callers_;
  const bool head_was_blocked = residency_.blocked_head().has_value();
  Caller& caller = callers_[event.caller];
  runtime::Residency::Effects effects;
  switch (event.kind) {
    case Kind::arrive:
      caller = {Caller::State::waiting, event.key};
      effects = residency_.arrive(event.caller, event.key);
      break;
    case Kind::cancel:
      caller = {};
      effects = residency_.cancel(event.caller);
      break;
    case Kind::end:
      caller = {};
      effects = residency_.release(event.caller);
      break;
    case Kind::ready:
      bodies_[event.key] = Body::up;
      use(event.key);
      effects = residency_.ready(event.key);
      break;
    case Kind::fail:
      bodies_[event.key] = Body::none;
      unloading_[event.key] = false;
      effects = residency_.failed(event.key);
      break;
    case Kind::exit:
      bodies_[event.key] = Body::none;
      unloading_[event.key] = false;
      for (Caller& other : callers_) {
        if (other.state == Caller::State::running && other.key == event.key) other.orphan = true;
      }
      effects = residency_.exited(event.key);
      break;
    case Kind::stopped:
      bodies_[event.key] = Body::none;
      effects = residency_.stopped(event.key);
      break;
    case Kind::turn:
      turned_ = true;
      effects = residency_.turn();
      break;
    case Kind::shutdown:
      down_ = true;
      effects = residency_.shutdown();
      break;
    case Kind::unload:
    case Kind::unload_now:
    case Kind::pin:
    case Kind::unpin:
    case Kind::idle: effects = act(event); break;
    case Kind::stop_leased:
      forced_ = true;
      for (Caller& other : callers_)
        other.orphan = other.orphan || other.state == Caller::State::running;
      effects = residency_.stop_leased();
      break;
  }
  for (const Effect& effect : effects) {
    if (auto broken = carry_out(effect)) return broken;
  }
  if (!head_was_blocked || !residency_.blocked_head())
    turned_ = turned_ && residency_.blocked_head().has_value();
  return check_after(event, before);
}

std::optional<std::string> ResidencyWorld::carry_out(const Effect& effect) {
  switch (effect.kind) {
    case Effect::Kind::start:
      if (down_) return "a start after shutdown";
      if (bodies_[effect.key] != Body::none) return "a start beside another runtime of the key";
      bodies_[effect.key] = Body::starting;
      turned_ = false;
      return std::nullopt;
    case Effect::Kind::stop: return carry_out_stop(effect.key);
    case Effect::Kind::grant: return answer(effect, true);
    default: return answer(effect, false);
  }
}

std::optional<std::string> ResidencyWorld::carry_out_stop(KeyId key) {
  if (bodies_[key] != Body::up && bodies_[key] != Body::starting)
    return "a stop of what does not run";
  const bool allowed = down_ || stopped_at_once_ == key;
  if (!allowed) {
    if (auto broken = check_stop_of(key)) return broken;
  }
  bodies_[key] = Body::stopping;
  unloading_[key] = false;
  std::erase(used_, key);
  return std::nullopt;
}

std::optional<std::string> ResidencyWorld::check_stop_of(KeyId key) const {
  if (bodies_[key] == Body::starting)
    return unloading_[key] && !waited(key) ? std::nullopt
                                           : std::optional("a starting runtime was stopped");
  if (leased(key)) return "a leased runtime was stopped";
  if (unloading_[key]) return std::nullopt;
  const bool was_closing = states_before_[key] == RuntimeState::closing;
  if (waited(key) && !was_closing && !turned_) return "a waited-for runtime was stopped";
  if (pinned_[key]) return "a pinned runtime was stopped";
  if (idle_ == key) return std::nullopt;
  for (const KeyId older : used_) {
    if (older == key) break;
    const bool idle = bodies_[older] == Body::up && !leased(older) && !waited(older);
    if (idle && !was_closing && !pinned_[older] && residency_.state(older) == RuntimeState::ready) {
      return "the victim is not the least recently used idle one";
    }
  }
  return std::nullopt;
}

std::optional<std::string> ResidencyWorld::answer(const Effect& effect, bool granted) {
  const std::size_t c = effect.ticket;
  Caller& caller = callers_[c];
  ++answers_[c];
  if (caller.state != Caller::State::waiting || caller.key != effect.key)
    return "an answer to somebody who does not wait";
  if (!granted) {
    caller = {};
    return std::nullopt;
  }
  if (bodies_[effect.key] != Body::up) return "a lease on a runtime that is not up";
  if (closed_before_[effect.key]) return "a lease on a runtime that is being unloaded";
  caller.state = Caller::State::running;
  use(effect.key);
  return std::nullopt;
}

std::optional<std::string> ResidencyWorld::check_after(const WorldEvent& event,
                                                       const std::vector<Caller>& before) const {
  const auto alive = std::ranges::count_if(bodies_, [](Body body) { return body != Body::none; });
  if (static_cast<std::size_t>(alive) > shape_.capacity) return "more runtimes than capacity";
  for (std::size_t c = 0; c < callers_.size(); ++c) {
    const bool was_waiting = before[c].state == Caller::State::waiting ||
                             (event.kind == Kind::arrive && event.caller == c);
    const bool cancelled_itself = event.kind == Kind::cancel && event.caller == c;
    const bool waits_now = callers_[c].state == Caller::State::waiting;
    const std::size_t expected = was_waiting && !waits_now && !cancelled_itself ? 1 : 0;
    if (answers_[c] != expected) return "a waiter got " + std::to_string(answers_[c]) + " answers";
    if (waits_now && !residency_.waits_for_place(c) && bodies_[callers_[c].key] != Body::starting) {
      return "a waiter is not in the line";
    }
    if (waits_now && down_) return "somebody waits after shutdown";
    if (waits_now && residency_.state(callers_[c].key) == RuntimeState::ready)
      return "somebody waits for a ready key";
  }
  const bool ended_a_start =
      event.kind == Kind::unload_now && states_before_[event.key] == RuntimeState::starting;
  if (ended_a_start && waited(event.key)) return "somebody waits for a start that was ended";
  for (KeyId k = 0; k < shape_.keys; ++k) {
    if (auto broken = check_key(k)) return broken;
  }
  return check_pins();
}

std::optional<std::string> ResidencyWorld::check_key(KeyId k) const {
  const auto waiting = std::ranges::count_if(
      callers_, [&](const Caller& x) { return x.state == Caller::State::waiting && x.key == k; });
  const auto running = std::ranges::count_if(callers_, [&](const Caller& x) {
    return x.state == Caller::State::running && x.key == k && !x.orphan;
  });
  if (residency_.waiters(k) != static_cast<std::size_t>(waiting))
    return "the line holds somebody who left";
  if (residency_.leases(k) != static_cast<std::size_t>(running)) return "the leases are miscounted";
  const RuntimeState state = residency_.state(k);
  const bool up = state == RuntimeState::ready || state == RuntimeState::closing;
  if (up != (bodies_[k] == Body::up)) return "a runtime is believed up that isn't, or the reverse";
  if (unloading_[k] && state == RuntimeState::ready)
    return "a runtime that is to be unloaded takes calls";
  if (residency_.is_pinned(k) != pinned_[k]) return "a pin was lost";
  return std::nullopt;
}

// Nobody waits for a place that no time will free.
std::optional<std::string> ResidencyWorld::check_pins() const {
  std::size_t held = 0;
  for (KeyId k = 0; k < shape_.keys; ++k) {
    const bool there = bodies_[k] == Body::starting || bodies_[k] == Body::up;
    held += there && pinned_[k] && !unloading_[k] ? 1 : 0;
  }
  if (held < shape_.capacity) return std::nullopt;
  for (KeyId k = 0; k < shape_.keys; ++k) {
    if (bodies_[k] == Body::none && waited(k)) return "somebody waits for a place that pins hold";
  }
  return std::nullopt;
}

bool ResidencyWorld::leased(KeyId key) const {
  return std::ranges::any_of(callers_, [&](const Caller& caller) {
    return caller.state == Caller::State::running && caller.key == key && !caller.orphan;
  });
}

bool ResidencyWorld::waited(KeyId key) const {
  return std::ranges::any_of(callers_, [&](const Caller& caller) {
    return caller.state == Caller::State::waiting && caller.key == key;
  });
}

void ResidencyWorld::use(KeyId key) {
  std::erase(used_, key);
  used_.push_back(key);
}

std::string ResidencyWorld::fingerprint() const {
  std::string text = residency_.fingerprint();
  text += "#";
  for (const Caller& caller : callers_) {
    text += caller.state == Caller::State::idle      ? 'i'
            : caller.state == Caller::State::waiting ? 'w'
                                                     : 'r';
    text += static_cast<char>('0' + caller.key);
    text += caller.orphan ? 'o' : '.';
  }
  for (const Body body : bodies_) text += static_cast<char>('0' + static_cast<int>(body));
  for (const KeyId key : used_) text += static_cast<char>('0' + key);
  for (KeyId k = 0; k < shape_.keys; ++k) {
    text += unloading_[k] ? 'u' : '.';
    text += pinned_[k] ? 'p' : '.';
  }
  text += static_cast<char>('0' + acts_left_ % 64);
  text += turned_ ? 't' : '.';
  text += forced_ ? 'f' : '.';
  return text;
}

}  // namespace werk::test
