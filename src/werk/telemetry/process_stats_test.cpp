#include "werk/telemetry/process_stats.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <fstream>

#include "tests/support/temporary_folder.hpp"

namespace werk::telemetry {
namespace {

class ProcessStatsTest : public ::testing::Test {
 protected:
  void process(int pid, int resident_pages, const std::string& children) {
    const auto folder = folder_.path() / std::to_string(pid);
    std::filesystem::create_directories(folder / "task" / std::to_string(pid));
    std::ofstream(folder / "statm") << "1000 " << resident_pages << " 3 4 0 5 0\n";
    std::ofstream(folder / "task" / std::to_string(pid) / "children") << children;
  }
  std::uint64_t pages(std::uint64_t count) const {
    return count * static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
  }
  std::string proc() const { return folder_.path().string(); }

  test::TemporaryFolder folder_;
};

TEST_F(ProcessStatsTest, TheMemoryOfAnEngineIsThatOfItsWholeTree) {
  process(10, 5, "11 12 ");
  process(11, 7, "");
  process(12, 20, "13");
  process(13, 100, "");
  process(14, 1000, "");
  EXPECT_EQ(tree_memory_bytes(10, proc()), pages(132));
}

TEST_F(ProcessStatsTest, AProcessThatIsGoneHasNoneAndAChildThatWentCountsNothing) {
  process(10, 5, "11");
  EXPECT_EQ(tree_memory_bytes(10, proc()), pages(5));
  EXPECT_EQ(tree_memory_bytes(99, proc()), std::nullopt);
}

TEST(ProcessStats, OfThisProcessAreThere) {
  const ProcessStats stats = own_process_stats();
  EXPECT_GT(stats.resident_bytes, 1'000'000u);
  EXPECT_GT(stats.virtual_bytes, stats.resident_bytes);
  EXPECT_GE(stats.open_files, 3u);
  EXPECT_GT(stats.files_max, 3u);
  EXPECT_EQ(stats.threads, 1u);
  const std::chrono::duration<double> now = std::chrono::system_clock::now().time_since_epoch();
  EXPECT_LE(stats.started_at, now.count() + 2.0);
  EXPECT_GT(stats.started_at, now.count() - 3600.0);
}

}  // namespace
}  // namespace werk::telemetry
