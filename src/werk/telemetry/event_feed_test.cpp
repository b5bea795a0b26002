#include "werk/telemetry/event_feed.hpp"

#include <gtest/gtest.h>

#include <boost/json/object.hpp>
#include <boost/json/parse.hpp>

#include "werk/telemetry/recorder.hpp"

namespace werk::telemetry {
namespace {

namespace json = boost::json;

class EventFeedTest : public ::testing::Test {
 protected:
  void publish(int number) {
    feed_.publish("test.number", [number](json::object& object) { object["number"] = number; });
  }
  static int number_in(const Event& event) {
    return static_cast<int>(json::parse(event.data).as_object().at("number").as_int64());
  }

  EventFeed feed_;
  int woken_ = 0;
  std::function<void()> wake_ = [this] { ++woken_; };
};

TEST_F(EventFeedTest, AFollowerGetsWhatComesAfterItInOrderWithRisingIds) {
  publish(1);
  EventFollower follower(feed_, std::nullopt, wake_);
  EXPECT_EQ(follower.next(), nullptr);
  publish(2);
  publish(3);
  EXPECT_EQ(woken_, 2);
  const Event* event = follower.next();
  ASSERT_NE(event, nullptr);
  EXPECT_EQ(number_in(*event), 2);
  EXPECT_EQ(event->id, 2u);
  EXPECT_EQ(event->type, "test.number");
  event = follower.next();
  ASSERT_NE(event, nullptr);
  EXPECT_EQ(event->id, 3u);
  EXPECT_EQ(follower.next(), nullptr);
  EXPECT_EQ(follower.take_lost(), 0u);
}

TEST_F(EventFeedTest, NothingIsWrittenDownWhileNobodyFollows) {
  bool written = false;
  feed_.publish("test.number", [&written](json::object&) { written = true; });
  EXPECT_FALSE(written);
  EXPECT_EQ(feed_.last_id(), 1u);
}

TEST_F(EventFeedTest, ASlowFollowerLosesTheOldestAndLearnsHowMany) {
  EventFollower slow(feed_, std::nullopt, wake_);
  EventFollower quick(feed_, std::nullopt, wake_);
  for (int i = 1; i <= static_cast<int>(EventFeed::kKept) + 10; ++i) {
    publish(i);
    EXPECT_EQ(number_in(*quick.next()), i);
  }
  const Event* first = slow.next();
  ASSERT_NE(first, nullptr);
  EXPECT_EQ(number_in(*first), 11);
  EXPECT_EQ(slow.take_lost(), 10u);
  EXPECT_EQ(slow.take_lost(), 0u);
  EXPECT_EQ(quick.take_lost(), 0u);
}

TEST_F(EventFeedTest, WhoComesBackGetsWhatItMissedOrLearnsThatItIsLost) {
  const EventFollower other(feed_, std::nullopt, wake_);
  for (int i = 1; i <= 5; ++i) publish(i);
  EventFollower back(feed_, 3, wake_);
  EXPECT_EQ(number_in(*back.next()), 4);
  EXPECT_EQ(number_in(*back.next()), 5);
  EXPECT_EQ(back.next(), nullptr);
  EventFollower of_another_node(feed_, 900, wake_);
  EXPECT_EQ(of_another_node.next(), nullptr);
  EXPECT_EQ(of_another_node.take_lost(), 0u);
}

TEST_F(EventFeedTest, WhatHappenedWhileNobodyFollowedIsLost) {
  for (int i = 1; i <= 5; ++i) publish(i);
  EventFollower back(feed_, 3, wake_);
  EXPECT_EQ(back.next(), nullptr);
  EXPECT_EQ(back.take_lost(), 2u);
  publish(6);
  EXPECT_EQ(number_in(*back.next()), 6);
}

TEST_F(EventFeedTest, TheEndWakesFollowersWhoStillGetTheRest) {
  EventFollower follower(feed_, std::nullopt, wake_);
  publish(1);
  feed_.end();
  EXPECT_EQ(woken_, 2);
  EXPECT_TRUE(feed_.ended());
  EXPECT_NE(follower.next(), nullptr);
  EXPECT_EQ(follower.next(), nullptr);
}

TEST_F(EventFeedTest, EachEndOfARuntimeIsToldByItsReason) {
  Recorder recorder;
  EventFollower follower(recorder.events(), std::nullopt, wake_);
  const RuntimeName name{"key", "small", "llama-cpu", "llama-server"};
  recorder.stopped(name, StopReason::capacity);
  recorder.stopped(name, StopReason::unloaded);
  recorder.stopped(name, StopReason::shutdown);
  recorder.died(name, "signal 9");
  EXPECT_EQ(follower.next()->type, "runtime.evicted");
  EXPECT_EQ(follower.next()->type, "runtime.unloaded");
  EXPECT_EQ(follower.next()->type, "runtime.stopped");
  const Event* died = follower.next();
  EXPECT_EQ(died->type, "runtime.died");
  EXPECT_NE(died->data.find(R"("how":"signal 9")"), std::string::npos);
}

}  // namespace
}  // namespace werk::telemetry
