#include "werk/async/loop_lag.hpp"

#include <gtest/gtest.h>

#include <utility>

namespace werk::async {
namespace {

using namespace std::chrono_literals;

// A clock of a loop that may be late: time moves, and its one timer fires when the test says so.
class LateClock final : public Clock {
 public:
  TimePoint now() const override { return now_; }
  [[nodiscard]] std::unique_ptr<Timer> call_at(TimePoint due,
                                               std::function<void()> callback) override {
    due_ = due;
    callback_ = std::move(callback);
    return std::make_unique<Timer>();
  }

  void pass(Duration time) { now_ += time; }
  // The loop comes to the timer, so late.
  void fire_late(Duration lag) {
    now_ = due_ + lag;
    const std::function<void()> callback = std::move(callback_);
    callback();
  }

 private:
  TimePoint now_{1h};
  TimePoint due_{};
  std::function<void()> callback_;
};

TEST(LoopLag, IsHowLateTheTimerFires) {
  LateClock clock;
  LoopLag lag(clock);
  EXPECT_EQ(lag.worst(), 0ms);
  clock.fire_late(0ms);
  EXPECT_EQ(lag.worst(), 0ms);
  clock.fire_late(700ms);
  EXPECT_EQ(lag.worst(), 700ms);
}

TEST(LoopLag, IsTheWorstOfTheLastTenSeconds) {
  LateClock clock;
  LoopLag lag(clock);
  clock.fire_late(3s);
  clock.fire_late(10ms);
  EXPECT_EQ(lag.worst(), 3s);
  for (int i = 0; i < 21; ++i) clock.fire_late(1ms);
  EXPECT_EQ(lag.worst(), 1ms);
}

TEST(LoopLag, SeesATimerThatIsOverdueWhileSomebodyLooks) {
  LateClock clock;
  LoopLag lag(clock);
  clock.pass(LoopLag::kEvery + 4s);
  EXPECT_EQ(lag.worst(), 4s);
}

}  // namespace
}  // namespace werk::async
