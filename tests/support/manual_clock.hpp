// A Clock that moves only when a test moves it. Timers fire in the order of their due time, then of
// their creation, inside advance(), on the caller's stack.
#pragma once

#include <map>
#include <utility>

#include "werk/async/clock.hpp"

namespace werk::test {

class ManualClock final : public async::Clock {
 public:
  async::TimePoint now() const override { return now_; }

  [[nodiscard]] std::unique_ptr<async::Timer> call_at(async::TimePoint due,
                                                      std::function<void()> callback) override {
    const Key key{due, next_id_++};
    timers_.emplace(key, std::move(callback));
    return std::make_unique<Handle>(*this, key);
  }

  void advance(async::Duration by) {
    const async::TimePoint until = now_ + by;
    while (!timers_.empty() && timers_.begin()->first.first <= until) {
      auto node = timers_.extract(timers_.begin());
      now_ = std::max(now_, node.key().first);
      node.mapped()();
    }
    now_ = until;
  }

  std::size_t pending() const { return timers_.size(); }

 private:
  using Key = std::pair<async::TimePoint, std::uint64_t>;
  class Handle final : public async::Timer {
   public:
    Handle(ManualClock& clock, Key key) : clock_(clock), key_(key) {}
    ~Handle() override { clock_.timers_.erase(key_); }

   private:
    ManualClock& clock_;
    Key key_;
  };

  async::TimePoint now_{std::chrono::hours(1)};
  std::uint64_t next_id_ = 0;
  std::map<Key, std::function<void()>> timers_;
};

}  // namespace werk::test
