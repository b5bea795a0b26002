#include "werk/app/progress.hpp"

#include <gtest/gtest.h>

namespace werk::app {
namespace {

using namespace std::chrono_literals;

constexpr std::uint64_t kGb = 1'000'000'000;

TEST(TransferLine, TellsBytesRateAndTheTimeLeft) {
  TransferLine line;
  EXPECT_EQ(line.text("m.gguf", 0, 4 * kGb, 0ms), "m.gguf  0 B of 4.0 GB, 0 %");
  EXPECT_EQ(line.text("m.gguf", kGb / 2, 4 * kGb, 500ms), "m.gguf  500.0 MB of 4.0 GB, 12 %")
      << "too early for a rate";
  EXPECT_EQ(line.text("m.gguf", kGb, 4 * kGb, 2s),
            "m.gguf  1.0 GB of 4.0 GB, 25 %, 500.0 MB/s, 6 s left");
  EXPECT_EQ(line.text("m.gguf", 4 * kGb, 4 * kGb, 8s),
            "m.gguf  4.0 GB of 4.0 GB, 100 %, 500.0 MB/s");
}

TEST(TransferLine, IsNeverDoneBeforeItIs) {
  EXPECT_NE(TransferLine().text("m", 999'999, 1'000'000, 0ms).find(" 99 %"), std::string::npos);
}

TEST(TransferLine, FollowsAPaceThatChanges) {
  TransferLine line;
  std::uint64_t done = 0;
  auto at = 0ms;
  const auto run = [&](int seconds, std::uint64_t per_second) {
    std::string text;
    for (int i = 0; i < 2 * seconds; ++i) {
      at += 500ms;
      done += per_second / 2;
      text = line.text("m", done, 1000 * kGb, at);
    }
    return text;
  };
  EXPECT_NE(run(30, kGb).find("1.0 GB/s"), std::string::npos);
  EXPECT_NE(run(30, kGb / 10).find("100.0 MB/s"), std::string::npos);
}

TEST(TransferLine, StandingStillTellsNoTime) {
  TransferLine line;
  line.text("m", 5, 10, 0ms);
  EXPECT_EQ(line.text("m", 5, 10, 60s), "m  5 B of 10 B, 50 %");
}

TEST(TransferLine, FitsIntoEightyColumns) {
  TransferLine line;
  const std::string name(200, 'n');
  line.text(name, 0, 999'900'000'000'000, 0ms);
  EXPECT_LE(line.text(name, 100'000'000'000, 999'900'000'000'000, 1000s).size(), 79u);
}

TEST(Durations, AreRoundedForPeople) {
  EXPECT_EQ(readable_duration(0s), "0 s");
  EXPECT_EQ(readable_duration(59s), "59 s");
  EXPECT_EQ(readable_duration(90s), "2 min");
  EXPECT_EQ(readable_duration(3600s + 20 * 60s), "1 h 20 min");
  EXPECT_EQ(readable_duration(75 * 3600s), "3 days");
}

}  // namespace
}  // namespace werk::app
