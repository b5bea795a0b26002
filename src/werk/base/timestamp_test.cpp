#include "werk/base/timestamp.hpp"

#include <gtest/gtest.h>

namespace werk {
namespace {

TEST(Timestamp, WhatIsWrittenIsReadAgain) {
  const auto time = std::chrono::system_clock::from_time_t(1'764'459'842);
  EXPECT_EQ(timestamp(time), "2025-11-29T23:44:02Z");
  EXPECT_EQ(time_of(timestamp(time)), time);
}

TEST(Timestamp, NothingElseIsRead) {
  for (const char* text :
       {"", "2025-11-29", "2025-11-29T23:44:02", "2025-11-29T23:44:02Z ", "soon"})
    EXPECT_FALSE(time_of(text)) << text;
}

}  // namespace
}  // namespace werk
