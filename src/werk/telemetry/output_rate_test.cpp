#include "werk/telemetry/output_rate.hpp"

#include <gtest/gtest.h>

namespace werk::telemetry {
namespace {

using namespace std::chrono_literals;

const OutputRate::TimePoint kBegin{100s};

TEST(OutputRate, IsNothingBeforeTheFirstTokenAndAfterTheLastHasAged) {
  OutputRate rate;
  EXPECT_EQ(rate.per_second(kBegin), std::nullopt);
  rate.add(10, kBegin);
  EXPECT_TRUE(rate.per_second(kBegin + 4s));
  EXPECT_EQ(rate.per_second(kBegin + 5s), std::nullopt);
  EXPECT_EQ(rate.per_second(kBegin + 1h), std::nullopt);
}

TEST(OutputRate, OfASteadyStreamIsItsRate) {
  OutputRate rate;
  for (int i = 0; i < 200; ++i) rate.add(2, kBegin + i * 50ms);
  const auto now = rate.per_second(kBegin + 9950ms);
  ASSERT_TRUE(now);
  EXPECT_NEAR(*now, 40.0, 1.0);
}

TEST(OutputRate, OfAStreamThatHasJustBegunCountsFromItsBeginning) {
  OutputRate rate;
  for (int i = 0; i < 20; ++i) rate.add(1, kBegin + i * 50ms);
  EXPECT_NEAR(*rate.per_second(kBegin + 1s), 20.0, 1.0);
}

TEST(OutputRate, AfterAPauseForgetsWhatCameBefore) {
  OutputRate rate;
  rate.add(1000, kBegin);
  rate.add(10, kBegin + 60s);
  EXPECT_LE(*rate.per_second(kBegin + 61s), 10.0);
}

}  // namespace
}  // namespace werk::telemetry
