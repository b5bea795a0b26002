// EventFeed: what happens in the node, told to whoever follows. The last events are kept, and each
// follower has its place among them: one that is too slow loses the oldest and learns how many.
// Nothing is kept or even written down while nobody follows, so that the feed costs a call nothing.
// Owned by the Recorder; loop thread only.
#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <list>
#include <optional>
#include <string>
#include <string_view>

namespace boost::json {
class object;
}

namespace werk::telemetry {

struct Event {
  std::uint64_t id = 0;  // counts up by one with every event of the node, told or not
  std::string type;      // "runtime.ready"
  std::string data;      // a JSON object
};

class EventFollower;

class EventFeed {
 public:
  static constexpr std::size_t kKept = 1024;

  // `fill` adds the event's members to an object that has its time already. It is called only if
  // somebody follows.
  using Fill = std::function<void(boost::json::object&)>;
  void publish(std::string_view type, const Fill& fill);

  std::uint64_t last_id() const { return last_id_; }
  std::size_t followers() const { return followers_.size(); }
  // Followers get what they haven't read yet, and then the end; later ones end at once.
  void end();
  bool ended() const { return ended_; }

 private:
  friend class EventFollower;

  std::deque<Event> kept_;
  std::uint64_t last_id_ = 0;
  std::list<EventFollower*> followers_;
  bool ended_ = false;
};

// One reader, from now on or from behind an id that it has seen. `wake` is called when there may be
// something new and may do no more than set an event.
class EventFollower {
 public:
  EventFollower(EventFeed& feed, std::optional<std::uint64_t> seen, std::function<void()> wake);
  ~EventFollower();
  EventFollower(const EventFollower&) = delete;
  EventFollower& operator=(const EventFollower&) = delete;

  // The next event, valid until the next call or turn; null: none yet, or the end if the feed has
  // ended.
  const Event* next();
  // How many events were lost before the one that next() gave last; asking forgets them.
  std::uint64_t take_lost();

 private:
  friend class EventFeed;

  EventFeed& feed_;
  std::function<void()> wake_;
  std::uint64_t next_id_;
  std::uint64_t lost_ = 0;
  std::list<EventFollower*>::iterator place_;
};

}  // namespace werk::telemetry
