#include "werk/app/bench/statistics.hpp"

#include <gtest/gtest.h>

namespace werk::app::bench {
namespace {

TEST(Statistics, WhatWasNeverMeasuredHasNoPercentiles) { EXPECT_FALSE(percentiles_of({})); }

TEST(Statistics, PercentilesAreOfTheSortedSamples) {
  std::vector<double> samples;
  for (int i = 100; i >= 0; --i) samples.push_back(i);
  const auto found = percentiles_of(samples);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->p50, 50);
  EXPECT_EQ(found->p90, 90);
  EXPECT_EQ(found->p95, 95);
  EXPECT_EQ(found->p99, 99);
}

TEST(Statistics, AMedianOfAnEvenNumberLiesBetweenTheTwoInTheMiddle) {
  EXPECT_EQ(median({4, 1, 3, 2}), 2.5);
  EXPECT_EQ(percentiles_of({1, 2})->p50, 1.5);
}

TEST(Statistics, APairWhoseReferenceTookOverTwiceItsBestIsDropped) {
  const Summary summary = summarize({{0.9, 1.0}, {1.1, 1.9}, {5.0, 2.1}});
  EXPECT_EQ(summary.pairs, 2u);
  EXPECT_EQ(summary.dropped, 1u);
  EXPECT_EQ(summary.median, 1.0);
  EXPECT_EQ(summary.low, 0.9);
  EXPECT_EQ(summary.high, 1.1);
}

}  // namespace
}  // namespace werk::app::bench
