#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <map>

#include "tests/support/loop_fixture.hpp"
#include "werk/process/node_lock.hpp"
#include "werk/process/signals.hpp"
#include "werk/process/socket_folder.hpp"

namespace werk::process {
namespace {

namespace fs = std::filesystem;

class TemporaryFolder {
 public:
  TemporaryFolder() : path_((fs::temp_directory_path() / "pt-XXXXXX").native()) {
    EXPECT_NE(::mkdtemp(path_.data()), nullptr);
  }
  ~TemporaryFolder() { fs::remove_all(path_); }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

Environment variables(std::map<std::string, std::string> values) {
  return [values = std::move(values)](std::string_view name) -> std::optional<std::string> {
    const auto found = values.find(std::string(name));
    if (found == values.end()) return std::nullopt;
    return found->second;
  };
}

bool starts_with(const std::string& text, const std::string& start) {
  return text.starts_with(start);
}

TEST(SocketFolderTest, ItIsPrivateAndGoesWithItsOwner) {
  const TemporaryFolder place;
  std::string path;
  {
    auto folder = SocketFolder::create(variables({{"XDG_RUNTIME_DIR", place.path() + "/"}}));
    ASSERT_TRUE(folder) << folder.error().message;
    path = folder->path();
    EXPECT_TRUE(starts_with(path, place.path() + "/werk-"));
    struct stat info {};
    ASSERT_EQ(::stat(path.c_str(), &info), 0);
    EXPECT_EQ(info.st_mode & 0777, 0700u);
    const std::string first = folder->next_socket("llama/../../x and a very long name");
    EXPECT_EQ(first, path + "/llama-------x-an-1.sock");
    EXPECT_NE(folder->next_socket("llama"), folder->next_socket("llama"));
    std::ofstream(first) << "left over";
  }
  EXPECT_FALSE(fs::exists(path));
}

TEST(SocketFolderTest, FoldersOfDeadNodesGoAndThoseOfLivingOnesStay) {
  const TemporaryFolder place;
  const Environment environment = variables({{"XDG_RUNTIME_DIR", place.path()}});
  auto living = SocketFolder::create(environment);
  ASSERT_TRUE(living);
  std::ofstream(living->path() + "/engine.sock") << "";
  const fs::path dead = fs::path(place.path()) / "werk-abcdef";
  const fs::path foreign = fs::path(place.path()) / "werk-ghijkl";
  fs::create_directory(dead);
  fs::create_directory(foreign);
  std::ofstream(dead / "lock") << "";
  std::ofstream(dead / "engine.sock") << "";
  auto next = SocketFolder::create(environment);
  ASSERT_TRUE(next);
  EXPECT_FALSE(fs::exists(dead));
  EXPECT_TRUE(fs::exists(foreign)) << "no lock file: not a node's, or one being made";
  EXPECT_TRUE(fs::exists(living->path() + "/engine.sock"));
  EXPECT_NE(living->path(), next->path());
}

TEST(SocketFolderTest, APlaceThatIsTooLongOrUnusableIsPassedOver) {
  const TemporaryFolder place;
  const std::string deep = place.path() + "/" + std::string(80, 'd');
  fs::create_directory(deep);
  auto folder = SocketFolder::create(variables({{"XDG_RUNTIME_DIR", deep}, {"TMPDIR", "/proc"}}));
  ASSERT_TRUE(folder) << folder.error().message;
  EXPECT_TRUE(starts_with(folder->path(), "/tmp/werk-"));
  const std::string longest = folder->next_socket(std::string(200, 's'));
  EXPECT_LE(longest.size(), SocketFolder::kSocketPathBytesMax);
  auto relative = SocketFolder::create(variables({{"XDG_RUNTIME_DIR", "here"}}));
  ASSERT_TRUE(relative);
  EXPECT_TRUE(starts_with(relative->path(), "/tmp/werk-"));
}

TEST(NodeLockTest, ASecondNodeIsToldWhoServesTheHome) {
  const TemporaryFolder home;
  EXPECT_FALSE(NodeLock::running(home.path()));
  {
    auto first = NodeLock::take(home.path());
    ASSERT_TRUE(first) << first.error().message;
    EXPECT_FALSE(NodeLock::running(home.path())) << "nothing is published yet";
    auto early = NodeLock::take(home.path());
    ASSERT_FALSE(early);
    EXPECT_EQ(early.error().code, ErrorCode::conflict);
    ASSERT_TRUE(first->publish({"http://127.0.0.1:11434", 4711, 1'700'000'000}));
    auto second = NodeLock::take(home.path());
    ASSERT_FALSE(second);
    EXPECT_EQ(second.error().code, ErrorCode::conflict);
    EXPECT_NE(second.error().message.find("process 4711"), std::string::npos);
    EXPECT_NE(second.error().message.find("http://127.0.0.1:11434"), std::string::npos);
    const auto info = NodeLock::running(home.path());
    ASSERT_TRUE(info);
    EXPECT_EQ(info->address, "http://127.0.0.1:11434");
    EXPECT_EQ(info->pid, 4711);
    EXPECT_EQ(info->started_at, 1'700'000'000);
    EXPECT_FALSE(NodeLock::take(home.path())) << "asking has not freed it";
  }
  EXPECT_FALSE(NodeLock::running(home.path()));
  EXPECT_TRUE(NodeLock::take(home.path()));
}

TEST(NodeLockTest, WhatAKilledNodeLeftIsNotBelieved) {
  const TemporaryFolder home;
  fs::create_directory(home.path() + "/run");
  std::ofstream(home.path() + "/run/lock") << "";
  std::ofstream(home.path() + "/run/node.json") << R"({"address":"http://x","pid":1})";
  EXPECT_FALSE(NodeLock::running(home.path()));
  auto lock = NodeLock::take(home.path());
  ASSERT_TRUE(lock);
  EXPECT_FALSE(NodeLock::running(home.path()));
}

TEST(NodeLockTest, AHomeThatCannotBeWrittenIsNamed) {
  const TemporaryFolder home;
  std::ofstream(home.path() + "/file") << "";
  auto lock = NodeLock::take(home.path() + "/file");
  ASSERT_FALSE(lock);
  EXPECT_EQ(lock.error().code, ErrorCode::io);
  EXPECT_NE(lock.error().message.find(home.path() + "/file"), std::string::npos);
}

class SignalTest : public test::LoopFixture {};

TEST_F(SignalTest, EverySignalIsATurnOfTheLoopUntilTheWatchIsGone) {
  std::vector<int> seen;
  const auto note = [&](int number) { seen.push_back(number); };
  auto watch = std::make_unique<SignalWatch>(executor(), note);
  ASSERT_EQ(::raise(SIGTERM), 0);
  run_until([&] { return seen.size() == 1; });
  ASSERT_EQ(::raise(SIGINT), 0);
  ASSERT_EQ(::raise(SIGPIPE), 0);
  run_until([&] { return seen.size() == 2; });
  EXPECT_EQ(seen, (std::vector<int>{SIGTERM, SIGINT}));
  ASSERT_EQ(::raise(SIGHUP), 0);
  watch.reset();
  poll();
  EXPECT_EQ(seen.size(), 2u);
}

}  // namespace
}  // namespace werk::process
