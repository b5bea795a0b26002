#include "werk/gateway/silence_limit.hpp"

#include <gtest/gtest.h>

#include "tests/support/manual_clock.hpp"

namespace werk::gateway {
namespace {

using std::chrono::seconds;

TEST(SilenceLimit, PassesWhenNothingWasHeardForSoLong) {
  test::ManualClock clock;
  SilenceLimit limit(clock, seconds(10), {});
  clock.advance(seconds(9));
  EXPECT_FALSE(limit.token().stop_requested());
  clock.advance(seconds(1));
  EXPECT_TRUE(limit.token().stop_requested());
  EXPECT_TRUE(limit.expired());
}

TEST(SilenceLimit, CountsAnewFromEachSignOfLife) {
  test::ManualClock clock;
  SilenceLimit limit(clock, seconds(10), {});
  for (int i = 0; i < 5; ++i) {
    clock.advance(seconds(9));
    limit.life();
  }
  EXPECT_FALSE(limit.expired());
  clock.advance(seconds(10));
  EXPECT_TRUE(limit.expired());
}

TEST(SilenceLimit, AClientThatTakesNothingIsNotTheEnginesSilence) {
  test::ManualClock clock;
  SilenceLimit limit(clock, seconds(10), {});
  clock.advance(seconds(5));
  limit.pause();
  clock.advance(seconds(100));
  EXPECT_FALSE(limit.token().stop_requested());
  limit.life();
  clock.advance(seconds(9));
  EXPECT_FALSE(limit.expired());
  clock.advance(seconds(10));
  EXPECT_TRUE(limit.expired());
}

TEST(SilenceLimit, AnOuterStopIsNoExpiry) {
  test::ManualClock clock;
  std::stop_source outer;
  SilenceLimit limit(clock, seconds(10), outer.get_token());
  outer.request_stop();
  EXPECT_TRUE(limit.token().stop_requested());
  clock.advance(seconds(20));
  EXPECT_FALSE(limit.expired());
}

}  // namespace
}  // namespace werk::gateway
