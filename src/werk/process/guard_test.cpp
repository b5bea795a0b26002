// Children whose whole group has a guardian.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <filesystem>
#include <fstream>

#include "tests/support/loop_fixture.hpp"
#include "tests/support/manual_clock.hpp"
#include "werk/process/child.hpp"
#include "werk/process/descriptor.hpp"
#include "werk/process/linux_group.hpp"
#include "werk/process/program.hpp"

namespace werk::process {
namespace {

using namespace std::chrono_literals;
namespace fs = std::filesystem;

// A process that is no child of ours: seen as gone also while nobody has reaped it.
class Watched {
 public:
  explicit Watched(pid_t pid) : file_(os::open_process(pid)) {}
  bool gone_within(std::chrono::milliseconds limit) {
    if (!file_) return true;
    pollfd wait{file_.get(), POLLIN, 0};
    return ::poll(&wait, 1, static_cast<int>(limit.count())) == 1;
  }

 private:
  Descriptor file_;
};

// Our children, of whom the test makes one and Werk its guardian.
std::vector<pid_t> own_children() {
  std::vector<pid_t> found;
  const std::string ours = std::to_string(::getpid());
  std::ifstream children("/proc/self/task/" + ours + "/children");
  for (pid_t pid = 0; children >> pid;) found.push_back(pid);
  return found;
}

class GuardTest : public test::LoopFixture {
 protected:
  std::unique_ptr<Child> spawn(std::string program, std::vector<std::string> arguments,
                               Guard guard) {
    Command command{std::move(program), std::move(arguments), own_environment()};
    command.guard = guard;
    command.on_line = [this](std::string_view line) { lines_.emplace_back(line); };
    auto child = children_.spawn(std::move(command));
    EXPECT_TRUE(child) << child.error().message;
    return child ? std::move(*child) : nullptr;
  }
  std::unique_ptr<Child> guarded_shell(std::string script) {
    return spawn("/bin/sh", {"-c", std::move(script)}, Guard::group);
  }
  void wait_for_lines(std::string_view line, std::ptrdiff_t count = 1) {
    run_until([&] { return std::ranges::count(lines_, line) == count; });
  }
  void wait_for_exit(Child& child) {
    run_until([&] { return child.status().has_value(); });
  }
  async::awaitable<void> stop(Child& child, Grace grace) {
    co_await child.stop(grace);
    ++stopped_;
  }
  void wait_for_stop() {
    run_until([&] { return stopped_ == 1; });
  }
  std::string own_shared_name() { return "/psm_werk_guard_test_" + std::to_string(::getpid()); }

  std::vector<std::string> lines_;
  int stopped_ = 0;
  test::ManualClock clock_;
  Children children_{executor(), clock_};
};

TEST_F(GuardTest, TheEndIsToldOnceNoMemberOfTheGroupIsLeft) {
  auto child = guarded_shell("(trap '' TERM; exec sleep 1000) & echo $!; exit 7");
  wait_for_exit(*child);
  EXPECT_EQ(child->status()->code, 7);
  ASSERT_EQ(lines_.size(), 1u);
  EXPECT_TRUE(Watched(std::stoi(lines_[0])).gone_within(0ms));
  EXPECT_TRUE(own_children().empty());
  EXPECT_EQ(clock_.pending(), 0u);
}

TEST_F(GuardTest, StoppingKillsHelpersThatIgnoreTermAfterTheGrace) {
  auto child = guarded_shell(
      "trap '' TERM; (trap '' TERM; echo $!; exec sleep 1000) & echo $!; echo ready; "
      "while :; do wait; done");
  wait_for_lines("ready");
  const pid_t group = child->pid();
  start(stop(*child, Grace{5s}));
  poll();
  EXPECT_FALSE(child->status());
  clock_.advance(5s);
  wait_for_stop();
  EXPECT_TRUE(os::living_members(group).empty());
}

TEST_F(GuardTest, AHelperThatCallsItselfATrackerHasItsTimeAndThenGoesToo) {
  // What shows it is its command line.
  auto child = guarded_shell(
      "sh -c 'trap \"\" TERM; echo ready; while :; do sleep 1000; done; : "
      "multiprocessing.resource_tracker' & wait");
  wait_for_lines("ready");
  const pid_t group = child->pid();
  start(stop(*child, Grace{0s}));
  run_until([&] { return clock_.pending() == 2; });
  EXPECT_FALSE(child->status()) << "the tracker has its time";
  EXPECT_FALSE(os::living_members(group).empty());
  clock_.advance(os::kTrackerGrace);
  wait_for_stop();
  EXPECT_TRUE(os::living_members(group).empty());
}

TEST_F(GuardTest, TheGuardianHasItsOwnSessionAndHoldsItsPipeAlone) {
  std::array<int, 2> ends{};
  ASSERT_EQ(::pipe(ends.data()), 0);
  const Descriptor reader(ends[0]);
  Descriptor inherited(ends[1]);
  auto child = guarded_shell("echo ready; exec sleep 1000");
  wait_for_lines("ready");
  inherited.close();
  // It closes what it got as the last thing before it waits.
  pollfd closed{reader.get(), POLLIN, 0};
  const auto limit = std::chrono::milliseconds(test::kWatchdog);
  ASSERT_EQ(::poll(&closed, 1, static_cast<int>(limit.count())), 1);
  std::vector<pid_t> found = own_children();
  std::erase(found, child->pid());
  ASSERT_EQ(found.size(), 1u);
  const fs::path folder = "/proc/" + std::to_string(found[0]);
  EXPECT_EQ(fs::read_symlink(folder / "cwd"), "/");
  EXPECT_EQ(::getsid(found[0]), found[0]);
  const auto files = fs::directory_iterator(folder / "fd");
  EXPECT_EQ(std::distance(begin(files), end(files)), 1);
  run(stop(*child, Grace{5s}));
  EXPECT_TRUE(own_children().empty());
  EXPECT_EQ(::kill(found[0], 0), -1) << "reaped";
}

TEST_F(GuardTest, AProgramThatCannotRunHasNoGuardian) {
  Command command{"/no/such/program", {}, {}};
  command.guard = Guard::group;
  EXPECT_FALSE(children_.spawn(std::move(command)));
  EXPECT_TRUE(own_children().empty());
}

// B20 for engines whose helpers outlive them.
TEST_F(GuardTest, WhenTheParentIsKilledNoMemberOfTheGroupIsLeft) {
  auto parent = spawn(WERK_PROCESS_PARENT, {"guarded"}, Guard::leader);
  wait_for_lines("started", 2);
  std::vector<Watched> members;
  for (const std::string& line : lines_) {
    if (line != "started" && line != "running") members.emplace_back(std::stoi(line));
  }
  ASSERT_EQ(members.size(), 3u);
  for (Watched& member : members) ASSERT_FALSE(member.gone_within(0ms));
  ::kill(parent->pid(), SIGKILL);
  for (Watched& member : members) EXPECT_TRUE(member.gone_within(test::kWatchdog));
  wait_for_exit(*parent);
}

TEST_F(GuardTest, SharedMemoryOfTheGroupGoesWithIt) {
  const std::string name = own_shared_name();
  auto child = spawn(WERK_PROCESS_PARENT, {"share", name}, Guard::group);
  wait_for_lines("sharing");
  ASSERT_TRUE(fs::exists("/dev/shm" + name));
  child->note_shared_memory();
  child->signal(SIGKILL);
  wait_for_exit(*child);
  EXPECT_FALSE(fs::exists("/dev/shm" + name));
}

TEST_F(GuardTest, SharedMemoryThatSomebodyElseUsesStays) {
  const std::string name = own_shared_name();
  auto child = spawn(WERK_PROCESS_PARENT, {"share", name}, Guard::group);
  wait_for_lines("sharing");
  const Descriptor file(::shm_open(name.c_str(), O_RDONLY, 0));
  ASSERT_TRUE(file);
  constexpr std::size_t kBytes = 4096;
  void* mapped = ::mmap(nullptr, kBytes, PROT_READ, MAP_SHARED, file.get(), 0);
  ASSERT_NE(mapped, MAP_FAILED);
  run(stop(*child, Grace{5s}));
  EXPECT_TRUE(fs::exists("/dev/shm" + name));
  ::munmap(mapped, kBytes);
  ::shm_unlink(name.c_str());
}

}  // namespace
}  // namespace werk::process
