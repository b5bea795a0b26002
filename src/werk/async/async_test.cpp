#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/support/loop_fixture.hpp"
#include "tests/support/manual_clock.hpp"
#include "werk/async/clock.hpp"
#include "werk/async/event.hpp"
#include "werk/async/offload.hpp"
#include "werk/async/task_group.hpp"

namespace werk::async {
namespace {

using namespace std::chrono_literals;

class AsyncTest : public test::LoopFixture {
 protected:
  awaitable<void> wait_and_note(Event& event, std::stop_token stop, std::string name) {
    const bool set = co_await event.wait(stop);
    notes_.push_back(name + (set ? " set" : " stopped"));
  }
  awaitable<void> sleep_and_note(Clock& clock, Duration duration, std::stop_token stop) {
    const bool slept = co_await sleep_for(clock, executor(), duration, stop);
    notes_.emplace_back(slept ? "slept" : "stopped");
  }
  awaitable<void> offload_and_note(Offload& offload) {
    const std::thread::id loop_thread = std::this_thread::get_id();
    const auto work = [] { return std::this_thread::get_id(); };
    const std::thread::id worker = co_await offload.run(work);
    notes_.emplace_back(worker != loop_thread ? "elsewhere" : "here");
    notes_.emplace_back(std::this_thread::get_id() == loop_thread ? "back" : "lost");
  }
  awaitable<void> join_and_note(TaskGroup& group) {
    co_await group.join();
    notes_.emplace_back("joined");
  }

  std::vector<std::string> notes_;
};

TEST_F(AsyncTest, AnEventWakesEveryWaiterAndStaysSet) {
  Event event(executor());
  start(wait_and_note(event, {}, "a"));
  start(wait_and_note(event, {}, "b"));
  poll();
  EXPECT_TRUE(notes_.empty());
  event.set();
  EXPECT_TRUE(notes_.empty()) << "nobody is resumed on the setter's stack";
  poll();
  EXPECT_EQ(notes_, (std::vector<std::string>{"a set", "b set"}));
  start(wait_and_note(event, {}, "c"));
  poll();
  EXPECT_EQ(notes_.back(), "c set");
}

TEST_F(AsyncTest, AStoppedWaiterLeavesTheOthersWaiting) {
  Event event(executor());
  std::stop_source stop;
  start(wait_and_note(event, stop.get_token(), "a"));
  start(wait_and_note(event, {}, "b"));
  poll();
  stop.request_stop();
  EXPECT_TRUE(notes_.empty());
  poll();
  EXPECT_EQ(notes_, std::vector<std::string>{"a stopped"});
  start(wait_and_note(event, stop.get_token(), "late"));
  poll();
  EXPECT_EQ(notes_.back(), "late stopped");
  event.set();
  poll();
  EXPECT_EQ(notes_.back(), "b set");
}

TEST_F(AsyncTest, AnEventThatIsSetAndStoppedInOneTurnCountsAsSet) {
  Event event(executor());
  std::stop_source stop;
  start(wait_and_note(event, stop.get_token(), "a"));
  poll();
  stop.request_stop();
  event.set();
  poll();
  EXPECT_EQ(notes_, std::vector<std::string>{"a set"});
}

TEST_F(AsyncTest, ASleepEndsWhenTheClockHasPassedOrTheStopCame) {
  test::ManualClock clock;
  std::stop_source stop;
  start(sleep_and_note(clock, 5s, {}));
  start(sleep_and_note(clock, 50s, stop.get_token()));
  poll();
  clock.advance(4s);
  poll();
  EXPECT_TRUE(notes_.empty());
  clock.advance(1s);
  poll();
  EXPECT_EQ(notes_, std::vector<std::string>{"slept"});
  stop.request_stop();
  poll();
  EXPECT_EQ(notes_.back(), "stopped");
  EXPECT_EQ(clock.pending(), 0u);
}

TEST_F(AsyncTest, ADeadlineTellsItsLimitFromTheOuterStop) {
  test::ManualClock clock;
  std::stop_source outer;
  Deadline first(clock, 5s, outer.get_token());
  Deadline second(clock, 50s, outer.get_token());
  clock.advance(3s);
  first.restart();
  clock.advance(4s);
  EXPECT_FALSE(first.token().stop_requested());
  clock.advance(1s);
  EXPECT_TRUE(first.token().stop_requested());
  EXPECT_TRUE(first.expired());
  outer.request_stop();
  EXPECT_TRUE(second.token().stop_requested());
  EXPECT_FALSE(second.expired());
}

TEST_F(AsyncTest, AGroupIsJoinedWhenItsLastTaskHasEnded) {
  Event event(executor());
  TaskGroup group(executor());
  group.spawn(wait_and_note(event, {}, "a"));
  EXPECT_EQ(group.running(), 1u);
  start(join_and_note(group));
  poll();
  EXPECT_TRUE(notes_.empty());
  event.set();
  poll();
  EXPECT_EQ(notes_, (std::vector<std::string>{"a set", "joined"}));
}

TEST_F(AsyncTest, OffloadedWorkRunsOnAnotherThreadAndReturnsToTheLoop) {
  Offload offload(1);
  run(offload_and_note(offload));
  EXPECT_EQ(notes_, (std::vector<std::string>{"elsewhere", "back"}));
}

TEST_F(AsyncTest, ASteadyTimerDestroyedBeforeItIsDueNeverCallsBack) {
  SteadyClock clock(executor());
  int calls = 0;
  auto kept = clock.call_at(clock.now(), [&calls] { ++calls; });
  auto gone = clock.call_at(clock.now(), [&calls] { calls += 100; });
  gone.reset();
  run_until([&calls] { return calls > 0; });
  poll();
  EXPECT_EQ(calls, 1);
}

}  // namespace
}  // namespace werk::async
