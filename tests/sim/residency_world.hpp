// The world around a Residency, for exploration: callers that arrive, leave and end, runtimes that
// come up, fail, die and stop. It knows what must hold independently of Residency's own
// book-keeping and says which promise was broken. Copyable, so that an explorer can branch.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "werk/runtime/residency.hpp"

namespace werk::test {

struct WorldEvent {
  enum class Kind : std::uint8_t {
    arrive,
    cancel,
    end,
    ready,
    fail,
    exit,
    stopped,
    turn,
    shutdown,
    stop_leased,
    unload,
    unload_now,
    pin,
    unpin,
    idle
  };
  Kind kind;
  std::size_t caller = 0;
  runtime::KeyId key = 0;
  bool fair = false;  // must happen some day if it stays possible
  bool operator==(const WorldEvent&) const = default;
  std::string text() const;
};

struct WorldShape {
  std::size_t keys = 2;
  std::size_t callers = 3;
  std::size_t capacity = 1;
  runtime::WhenFull when_full = runtime::WhenFull::wait;
  std::size_t acts = 0;  // how often a person unloads, pins or unpins something
  std::string text() const;
};

class ResidencyWorld {
 public:
  explicit ResidencyWorld(WorldShape shape);

  std::vector<WorldEvent> possible() const;
  // Lets the event happen; the name of the broken promise, if one broke.
  std::optional<std::string> happen(const WorldEvent& event);
  bool waits(std::size_t caller) const { return callers_[caller].state == Caller::State::waiting; }
  // An unload that isn't done.
  bool unloads(runtime::KeyId key) const { return unloading_[key]; }
  std::string fingerprint() const;

 private:
  struct Caller {
    enum class State : std::uint8_t { idle, waiting, running };
    State state = State::idle;
    runtime::KeyId key = 0;
    bool orphan = false;  // its runtime died under it
  };
  // What physically exists, whatever Residency believes.
  enum class Body : std::uint8_t { none, starting, up, stopping };

  void begin_event();
  void add_acts(std::vector<WorldEvent>& events) const;
  runtime::Residency::Effects act(const WorldEvent& event);
  std::optional<std::string> carry_out(const runtime::Effect& effect);
  std::optional<std::string> carry_out_stop(runtime::KeyId key);
  std::optional<std::string> check_stop_of(runtime::KeyId key) const;
  std::optional<std::string> answer(const runtime::Effect& effect, bool granted);
  std::optional<std::string> check_after(const WorldEvent& event,
                                         const std::vector<Caller>& before) const;
  std::optional<std::string> check_key(runtime::KeyId key) const;
  std::optional<std::string> check_pins() const;
  bool leased(runtime::KeyId key) const;
  bool waited(runtime::KeyId key) const;
  void use(runtime::KeyId key);

  WorldShape shape_;
  runtime::Residency residency_;
  std::vector<Caller> callers_;
  std::vector<Body> bodies_;
  std::vector<runtime::KeyId> used_;  // keys in order of last use, oldest first
  std::vector<std::size_t> answers_;  // per caller, within one event
  std::vector<runtime::RuntimeState> states_before_;
  std::vector<bool> unloading_;      // asked to go and not gone yet
  std::vector<bool> closed_before_;  // was up and unloading when the event came
  std::vector<bool> pinned_;
  std::optional<runtime::KeyId> stopped_at_once_;  // by this event
  std::optional<runtime::KeyId> idle_;             // by this event
  std::size_t acts_left_ = 0;
  bool down_ = false;
  bool forced_ = false;
  bool turned_ = false;
};

}  // namespace werk::test
