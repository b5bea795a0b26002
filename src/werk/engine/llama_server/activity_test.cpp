#include "werk/engine/llama_server/activity.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

namespace werk::engine::llama_server {
namespace {

constexpr std::uint64_t kMib = 1024 * 1024;

TEST(Activity, GrowthIsASignOfLifeAndNoiseIsNot) {
  ActivityWatch watch;
  EXPECT_TRUE(watch.look(Activity{10, 5 * kMib, 0}).has_value());
  EXPECT_FALSE(watch.look(Activity{10, 5 * kMib, 0}).has_value());
  EXPECT_FALSE(watch.look(Activity{10, 5 * kMib + 8192, 100}).has_value());
  EXPECT_EQ(watch.look(Activity{11, 5 * kMib, 0}), "it prints");
  EXPECT_EQ(watch.look(Activity{11, 7 * kMib, 0}), "its memory grows");
  EXPECT_FALSE(watch.look(Activity{11, 3 * kMib, 0}).has_value()) << "less is no progress";
  EXPECT_EQ(watch.look(Activity{11, 3 * kMib, kMib}), "it reads");
}

TEST(Activity, OfThisProcessIsSeen) {
  const Activity activity = activity_of(getpid(), 7);
  EXPECT_EQ(activity.output_bytes, 7u);
  EXPECT_GT(activity.resident_bytes, kMib);
  EXPECT_GT(memory_available_bytes(), kMib);
}

}  // namespace
}  // namespace werk::engine::llama_server
