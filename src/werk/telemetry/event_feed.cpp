#include "werk/telemetry/event_feed.hpp"

#include <fmt/chrono.h>

#include <boost/json/object.hpp>
#include <boost/json/serialize.hpp>

namespace werk::telemetry {

namespace json = boost::json;

namespace {

std::string time_text(std::chrono::system_clock::time_point time) {
  const auto whole = std::chrono::floor<std::chrono::milliseconds>(time);
  const auto part = whole.time_since_epoch().count() % 1000;
  return fmt::format("{:%Y-%m-%dT%H:%M:%S}.{:03}Z",
                     fmt::gmtime(std::chrono::system_clock::to_time_t(time)), part);
}

}  // namespace

void EventFeed::publish(std::string_view type, const Fill& fill) {
  ++last_id_;
  if (followers_.empty()) {
    kept_.clear();
    return;
  }
  json::object object;
  object["time"] = time_text(std::chrono::system_clock::now());
  fill(object);
  kept_.push_back(Event{last_id_, std::string(type), json::serialize(object)});
  if (kept_.size() > kKept) kept_.pop_front();
  for (const EventFollower* follower : followers_) follower->wake_();
}

void EventFeed::end() {
  ended_ = true;
  for (const EventFollower* follower : followers_) follower->wake_();
}

EventFollower::EventFollower(EventFeed& feed, std::optional<std::uint64_t> seen,
                             std::function<void()> wake)
    : feed_(feed), wake_(std::move(wake)), next_id_(feed.last_id_ + 1) {
  // An id of an earlier node says nothing of this one's events.
  if (seen && *seen < next_id_) next_id_ = *seen + 1;
  place_ = feed_.followers_.insert(feed_.followers_.end(), this);
}

EventFollower::~EventFollower() { feed_.followers_.erase(place_); }

const Event* EventFollower::next() {
  if (next_id_ > feed_.last_id_) return nullptr;
  const std::uint64_t oldest = feed_.kept_.empty() ? feed_.last_id_ + 1 : feed_.kept_.front().id;
  if (next_id_ < oldest) {
    lost_ += oldest - next_id_;
    next_id_ = oldest;
  }
  if (feed_.kept_.empty()) return nullptr;
  return &feed_.kept_[next_id_++ - oldest];
}

std::uint64_t EventFollower::take_lost() { return std::exchange(lost_, 0); }

}  // namespace werk::telemetry
