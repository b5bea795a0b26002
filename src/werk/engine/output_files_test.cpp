#include "werk/engine/output_files.hpp"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <fstream>

#include "tests/support/temporary_folder.hpp"

namespace werk::engine {
namespace {

class OutputFilesTest : public ::testing::Test {
 protected:
  std::filesystem::path folder() const { return home_.path() / "logs"; }
  std::uint64_t all_bytes() const {
    std::uint64_t bytes = 0;
    for (const auto& entry : std::filesystem::directory_iterator(folder()))
      bytes += entry.file_size();
    return bytes;
  }

  test::TemporaryFolder home_;
};

TEST_F(OutputFilesTest, LinesAreFoundAgainFromTheEnd) {
  const OutputFiles files(folder());
  ASSERT_TRUE(files.append("a/b", "one\ntwo\n"));
  ASSERT_TRUE(files.append("a/b", "three\n"));
  EXPECT_EQ(files.last_lines("a/b", 2), "two\nthree\n");
  EXPECT_EQ(files.last_lines("a/b", 100), "one\ntwo\nthree\n");
  EXPECT_EQ(files.last_lines("a/b", 0), "");
  EXPECT_EQ(files.models(), std::vector<std::string>{"a/b"});
  EXPECT_TRUE(files.holds("a/b"));
}

TEST_F(OutputFilesTest, AModelWithoutOutputHasNoLinesAndNoFile) {
  const OutputFiles files(folder());
  EXPECT_EQ(files.last_lines("a", 10), "");
  EXPECT_FALSE(files.holds("a"));
  EXPECT_TRUE(files.models().empty());
}

TEST_F(OutputFilesTest, OldFilesGoAndLinesAreFoundOverThoseThatStay) {
  const OutputFiles files(folder(), 20, 2);
  for (int i = 10; i < 60; ++i) ASSERT_TRUE(files.append("a", "line " + std::to_string(i) + "\n"));
  EXPECT_LE(all_bytes(), 60u);
  EXPECT_EQ(files.last_lines("a", 4), "line 56\nline 57\nline 58\nline 59\n");
  EXPECT_EQ(files.models(), std::vector<std::string>{"a"}) << "older files are no models";
}

TEST_F(OutputFilesTest, OnlyTheOwnerCanReadThem) {
  const OutputFiles files(folder());
  ASSERT_TRUE(files.append("a", "secret\n"));
  struct stat facts {};
  ASSERT_EQ(::stat((folder() / "a.log").c_str(), &facts), 0);
  EXPECT_EQ(facts.st_mode & 0777u, 0600u);
  ASSERT_EQ(::stat(folder().c_str(), &facts), 0);
  EXPECT_EQ(facts.st_mode & 0777u, 0700u);
}

TEST_F(OutputFilesTest, ALinkInTheWayIsNotFollowed) {
  const OutputFiles files(folder());
  std::filesystem::create_directories(folder());
  std::filesystem::create_symlink(home_.path() / "elsewhere", folder() / "a.log");
  const Status written = files.append("a", "x\n");
  ASSERT_FALSE(written);
  EXPECT_EQ(written.error().code, ErrorCode::io);
  EXPECT_FALSE(std::filesystem::exists(home_.path() / "elsewhere"));
}

}  // namespace
}  // namespace werk::engine
