// SilenceLimit: gives up on an engine that says nothing for too long. Cheap to feed: life() only
// notes the time, one timer looks at it. While it is paused no time counts: a client that takes
// nothing is not the engine's silence. Its token stops when the limit has passed or the outer token
// stops. Owned by one call, loop thread only.
#pragma once

#include "werk/async/clock.hpp"

namespace werk::gateway {

class SilenceLimit {
 public:
  SilenceLimit(async::Clock& clock, async::Duration limit, std::stop_token outer)
      : clock_(clock),
        limit_(limit),
        last_life_(clock.now()),
        outer_(outer, [this] { source_.request_stop(); }) {
    look_at(last_life_ + limit_);
  }
  SilenceLimit(const SilenceLimit&) = delete;
  SilenceLimit& operator=(const SilenceLimit&) = delete;

  // A sign of life; the limit counts anew from now, which is what it returns and what last_life()
  // says until time passes in a pause.
  async::TimePoint life() {
    last_life_ = clock_.now();
    paused_ = false;
    return last_life_;
  }
  async::TimePoint last_life() const { return last_life_; }
  // Until the next life().
  void pause() { paused_ = true; }
  std::stop_token token() const { return source_.get_token(); }
  bool expired() const { return expired_; }

 private:
  void look_at(async::TimePoint due) {
    timer_ = clock_.call_at(due, [this] {
      if (paused_) last_life_ = clock_.now();
      const async::TimePoint end = last_life_ + limit_;
      if (clock_.now() < end) return look_at(end);
      if (source_.stop_requested()) return;
      expired_ = true;
      source_.request_stop();
    });
  }

  async::Clock& clock_;
  async::Duration limit_;
  async::TimePoint last_life_;
  std::stop_source source_;
  bool paused_ = false;
  bool expired_ = false;
  std::stop_callback<std::function<void()>> outer_;
  std::unique_ptr<async::Timer> timer_;
};

}  // namespace werk::gateway
