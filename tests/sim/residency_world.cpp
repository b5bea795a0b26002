#include "tests/sim/residency_world.hpp"

#include <algorithm>

namespace werk::test {

using runtime::Effect;
using runtime::KeyId;
using runtime::RuntimeState;
using Kind = WorldEvent::Kind;

std::string WorldEvent::text() const {
  constexpr std::string_view kNames[] = {"arrive", "cancel",  "end",  "ready",    "fail",
                                         "exit",   "stopped", "turn", "shutdown", "stop_leased"};
  const std::string name(kNames[static_cast<std::size_t>(kind)]);
  switch (kind) {
    case Kind::arrive:
      return name + " caller " + std::to_string(caller) + " key " + std::to_string(key);
    case Kind::cancel:
    case Kind::end:
      return name + " caller " + std::to_string(caller);
    case Kind::turn:
    case Kind::shutdown:
    case Kind::stop_leased:
      return name;
    default:
      return name + " key " + std::to_string(key);
  }
}

std::string WorldShape::text() const {
  return std::to_string(keys) + " keys, " + std::to_string(callers) + " callers, capacity " +
         std::to_string(capacity) + (when_full == runtime::WhenFull::wait ? ", wait" : ", refuse");
}

ResidencyWorld::ResidencyWorld(WorldShape shape)
    : shape_(shape),
      residency_(shape.capacity, shape.when_full),
      callers_(shape.callers),
      bodies_(shape.keys, Body::none),
      answers_(shape.callers, 0) {}

std::vector<WorldEvent> ResidencyWorld::possible() const {
  std::vector<WorldEvent> events;
  for (std::size_t c = 0; c < callers_.size(); ++c) {
    if (callers_[c].state == Caller::State::idle) {
      for (KeyId k = 0; k < shape_.keys; ++k)
        events.push_back({Kind::arrive, c, k});
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
  if (residency_.blocked_head() && !turned_) events.push_back({Kind::turn, 0, 0, true});
  if (!down_) events.push_back({Kind::shutdown});
  if (down_ && !forced_) events.push_back({Kind::stop_leased});
  return events;
}

std::optional<std::string> ResidencyWorld::happen(const WorldEvent& event) {
  std::ranges::fill(answers_, 0u);
  states_before_.clear();
  for (KeyId k = 0; k < shape_.keys; ++k)
    states_before_.push_back(residency_.state(k));
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
      effects = residency_.failed(event.key);
      break;
    case Kind::exit:
      bodies_[event.key] = Body::none;
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
    case Effect::Kind::stop:
      return carry_out_stop(effect.key);
    case Effect::Kind::grant:
      return answer(effect, true);
    default:
      return answer(effect, false);
  }
}

std::optional<std::string> ResidencyWorld::carry_out_stop(KeyId key) {
  if (bodies_[key] != Body::up && bodies_[key] != Body::starting)
    return "a stop of what does not run";
  if (!down_) {
    if (bodies_[key] == Body::starting) return "a starting runtime was stopped";
    if (leased(key)) return "a leased runtime was stopped";
    const bool was_closing = states_before_[key] == RuntimeState::closing;
    if (waited(key) && !was_closing && !turned_) return "a waited-for runtime was stopped";
    for (const KeyId older : used_) {
      if (older == key) break;
      const bool idle = bodies_[older] == Body::up && !leased(older) && !waited(older);
      if (idle && !was_closing && residency_.state(older) == RuntimeState::ready) {
        return "the victim is not the least recently used idle one";
      }
    }
  }
  bodies_[key] = Body::stopping;
  std::erase(used_, key);
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
  for (KeyId k = 0; k < shape_.keys; ++k) {
    const auto waiting = std::ranges::count_if(
        callers_, [&](const Caller& x) { return x.state == Caller::State::waiting && x.key == k; });
    const auto running = std::ranges::count_if(callers_, [&](const Caller& x) {
      return x.state == Caller::State::running && x.key == k && !x.orphan;
    });
    if (residency_.waiters(k) != static_cast<std::size_t>(waiting))
      return "the line holds somebody who left";
    if (residency_.leases(k) != static_cast<std::size_t>(running))
      return "the leases are miscounted";
    const RuntimeState state = residency_.state(k);
    const bool up = state == RuntimeState::ready || state == RuntimeState::closing;
    if (up != (bodies_[k] == Body::up))
      return "a runtime is believed up that isn't, or the reverse";
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
  for (const Body body : bodies_)
    text += static_cast<char>('0' + static_cast<int>(body));
  for (const KeyId key : used_)
    text += static_cast<char>('0' + key);
  text += turned_ ? 't' : '.';
  text += forced_ ? 'f' : '.';
  return text;
}

}  // namespace werk::test
