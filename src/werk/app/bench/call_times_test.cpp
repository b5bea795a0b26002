#include "werk/app/bench/call_times.hpp"

#include <gtest/gtest.h>

#include <boost/json/parse.hpp>

namespace werk::app::bench {
namespace {

namespace json = boost::json;

json::object page_of(std::string_view recent, std::string_view active = "[]") {
  return json::parse(R"({"recent_calls":)" + std::string(recent) + R"(,"active_calls":)" +
                     std::string(active) + "}")
      .as_object();
}

class CallTimesTest : public ::testing::Test {
 protected:
  CallTimes times_;
  std::vector<RequestRecord> requests_{3};
};

TEST_F(CallTimesTest, AServedCallTellsItsRequestWhatItWaitedForASlotAndForItsModel) {
  times_.expect("x-1", 0);
  times_.expect("x-3", 2);
  times_.read(page_of(R"([{"id":"x-3","outcome":"served","load_s":1.5,"wait_s":0},
                          {"id":"y-2","outcome":"served","load_s":7,"wait_s":7},
                          {"id":"x-1","outcome":"served","load_s":0,"wait_s":0.25}])"),
              requests_);
  EXPECT_EQ(requests_[0].queue_seconds, 0.25);
  EXPECT_EQ(requests_[0].load_seconds, 0.0);
  EXPECT_FALSE(requests_[1].queue_seconds) << "a stranger's call";
  EXPECT_EQ(requests_[2].queue_seconds, 0.0);
  EXPECT_EQ(requests_[2].load_seconds, 1.5);
}

TEST_F(CallTimesTest, OnceToldItStaysAsALaterPageFindsIt) {
  times_.expect("x-1", 0);
  times_.read(page_of(R"([{"id":"x-1","outcome":"served","load_s":0,"wait_s":0.25}])"), requests_);
  times_.expect("x-2", 1);
  times_.read(page_of(R"([{"id":"x-2","outcome":"served","load_s":0,"wait_s":0.5}])"), requests_);
  EXPECT_EQ(requests_[0].queue_seconds, 0.25);
  EXPECT_EQ(requests_[1].queue_seconds, 0.5);
}

TEST_F(CallTimesTest, OfTwoCallsWithOneIdTheLatestCounts) {
  times_.expect("x-1", 0);
  times_.read(page_of(R"([{"id":"x-1","outcome":"served","load_s":0,"wait_s":2},
                          {"id":"x-1","outcome":"served","load_s":0,"wait_s":1}])"),
              requests_);
  EXPECT_EQ(requests_[0].queue_seconds, 2.0);
}

TEST_F(CallTimesTest, WhatIsNotToldIsNeverGuessed) {
  for (std::size_t i = 0; i < 3; ++i) times_.expect("x-" + std::to_string(i), i);
  times_.read(page_of(R"([{"id":"x-0","outcome":"failed","load_s":0,"wait_s":0},
                          {"id":"x-1","outcome":"served"}, null, {"id":4}])"),
              requests_);
  times_.read({}, requests_);
  times_.read(page_of(R"("none")"), requests_);
  for (const RequestRecord& request : requests_) {
    EXPECT_FALSE(request.queue_seconds);
    EXPECT_FALSE(request.load_seconds);
  }
}

TEST_F(CallTimesTest, AnExpectedCallMayStillBeUnderWay) {
  times_.expect("x-1", 0);
  EXPECT_FALSE(times_.any_under_way(page_of("[]", R"([{"id":"y-1"}, null])")));
  EXPECT_TRUE(times_.any_under_way(page_of("[]", R"([{"id":"y-1"}, {"id":"x-1"}])")));
  times_.read(page_of(R"([{"id":"x-1","outcome":"served","load_s":0,"wait_s":1}])"), requests_);
  EXPECT_FALSE(times_.any_under_way(page_of("[]", R"([{"id":"x-1"}])"))) << "told already";
  EXPECT_FALSE(times_.any_under_way({}));
}

}  // namespace
}  // namespace werk::app::bench
