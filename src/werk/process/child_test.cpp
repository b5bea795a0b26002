#include "werk/process/child.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "tests/support/loop_fixture.hpp"
#include "tests/support/manual_clock.hpp"
#include "werk/process/captured.hpp"
#include "werk/process/descriptor.hpp"
#include "werk/process/output.hpp"
#include "werk/process/program.hpp"

namespace werk::process {
namespace {

using namespace std::chrono_literals;
using Lines = std::vector<std::string>;

// Sees the end of a process that is no child of ours, whether anybody reaps it or not.
class Witness {
 public:
  explicit Witness(pid_t pid) : file_(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0))) {}
  bool gone_within(std::chrono::milliseconds limit) {
    if (!file_) return true;
    pollfd wait{file_.get(), POLLIN, 0};
    return ::poll(&wait, 1, static_cast<int>(limit.count())) == 1;
  }
  bool alive() { return !gone_within(0ms); }

 private:
  Descriptor file_;
};

class ChildTest : public test::LoopFixture {
 protected:
  Command shell(std::string script) {
    Command command{"/bin/sh", {"-c", std::move(script)}, {"PATH=/usr/bin:/bin"}};
    command.on_line = [this](std::string_view line) { lines_.emplace_back(line); };
    return command;
  }
  std::unique_ptr<Child> spawn(Command command) {
    auto child = children_.spawn(std::move(command));
    EXPECT_TRUE(child) << child.error().message;
    return child ? std::move(*child) : nullptr;
  }
  Error refusal(Command command) {
    auto child = children_.spawn(std::move(command));
    EXPECT_FALSE(child);
    return child ? Error{} : child.error();
  }
  void wait_for_line(std::string_view line) {
    run_until([&] { return std::ranges::find(lines_, line) != lines_.end(); });
  }
  void wait_for_exit(Child& child) {
    run_until([&] { return child.status().has_value(); });
  }
  async::awaitable<void> stop_and_note(Child& child, Grace grace) {
    const ExitStatus status = co_await child.stop(grace);
    stopped_.push_back(status.text());
  }
  async::awaitable<void> capture(Command command, async::Duration limit, std::size_t bytes_max,
                                 std::stop_token stop) {
    captured_ =
        co_await run_captured(children_, clock_, std::move(command), limit, bytes_max, stop);
    captured_ready_ = true;
  }
  async::awaitable<void> stop_all_and_note(Grace grace) {
    co_await children_.stop_all(grace);
    stopped_.emplace_back("all");
  }
  std::string status_line(pid_t pid, const std::string& name) {
    std::ifstream file("/proc/" + std::to_string(pid) + "/status");
    for (std::string line; std::getline(file, line);) {
      if (line.starts_with(name + ":\t")) return line.substr(name.size() + 2);
    }
    return "";
  }

  Lines lines_;
  Lines stopped_;
  test::ManualClock clock_;
  Children children_{executor(), clock_};
  Result<Captured> captured_;
  bool captured_ready_ = false;
};

constexpr Grace kFiveSeconds{5s};

TEST_F(ChildTest, TheExitStatusAndTheLastOutputAreThereWhenTheExitIsTold) {
  auto child = spawn(shell("echo one; echo two >&2; printf three; exit 3"));
  wait_for_exit(*child);
  EXPECT_EQ(child->status()->text(), "exit status 3");
  EXPECT_FALSE(child->status()->clean());
  EXPECT_EQ(lines_, (Lines{"one", "two", "three"}));
  EXPECT_EQ(child->output_tail(), "one\ntwo\nthree");
  EXPECT_TRUE(child->exited().is_set());
  EXPECT_EQ(children_.alive(), 0u);
}

TEST_F(ChildTest, DeathByASignalIsNamed) {
  auto child = spawn(shell("kill -KILL $$"));
  wait_for_exit(*child);
  EXPECT_EQ(child->status()->text(), "killed by SIGKILL");
  EXPECT_EQ((ExitStatus{.signal = SIGSEGV, .core_dumped = true}.text()),
            "killed by SIGSEGV (core dumped)");
}

TEST_F(ChildTest, AProgramThatCannotRunIsNamedWithTheReason) {
  Error error = refusal(Command{"/no/such/program", {}, {}});
  EXPECT_EQ(error.code, ErrorCode::not_found);
  EXPECT_EQ(error.message, "cannot start '/no/such/program': No such file or directory");
  error = refusal(Command{"werk-no-such-program", {}, {"PATH=/usr/bin"}});
  EXPECT_EQ(error.code, ErrorCode::not_found);
  EXPECT_EQ(error.message, "cannot start 'werk-no-such-program': no such program in PATH");
  error = refusal(Command{"/etc/passwd", {}, {}});
  EXPECT_EQ(error.code, ErrorCode::io);
  EXPECT_EQ(error.message, "cannot start '/etc/passwd': Permission denied");
  error = refusal(Command{"/bin/true", {}, {}, "/no/such/folder"});
  EXPECT_EQ(error.message,
            "cannot start '/bin/true' in folder '/no/such/folder': No such file or directory");
  error = refusal(Command{"/bin/echo", {std::string("a\0b", 3)}, {}});
  EXPECT_EQ(error.code, ErrorCode::invalid_request);
  EXPECT_EQ(children_.alive(), 0u);
}

TEST_F(ChildTest, AProgramWithoutSlashIsFoundInTheChildsPath) {
  Command command{"echo", {"found"}, {"PATH=/nowhere::/bin"}};
  command.on_line = [this](std::string_view line) { lines_.emplace_back(line); };
  auto child = spawn(std::move(command));
  wait_for_exit(*child);
  EXPECT_EQ(lines_, Lines{"found"});
}

TEST_F(ChildTest, TheEnvironmentAndTheFolderAreExactlyTheGivenOnes) {
  Command command{"/usr/bin/env", {}, {"A=1", "LLAMA_ARG_X=y z"}};
  auto child = spawn(std::move(command));
  wait_for_exit(*child);
  EXPECT_EQ(child->output_tail(), "A=1\nLLAMA_ARG_X=y z\n");
  Command where{"/bin/pwd", {}, {}, "/usr"};
  child = spawn(std::move(where));
  wait_for_exit(*child);
  EXPECT_EQ(child->output_tail(), "/usr\n");
}

TEST_F(ChildTest, AChildThatPrintsTenMegabytesIsNeverBlockedAndTheTailIsBounded) {
  auto child = spawn(shell("head -c 10000000 /dev/zero | tr '\\0' x; echo end"));
  wait_for_exit(*child);
  EXPECT_TRUE(child->status()->clean());
  EXPECT_EQ(child->output_bytes(), 10'000'004u);
  EXPECT_EQ(child->output_tail().size(), Child::kTailBytesMax);
  EXPECT_TRUE(child->output_tail().ends_with("xxxend\n"));
  EXPECT_EQ(lines_.size(), 10'000'003 / LineSplitter::kLineBytesMax + 1);
}

// B28: a listening socket that a child inherits keeps its port after the node is gone.
TEST_F(ChildTest, AChildHoldsItsStandardFilesAndWhatItWasGivenAndNothingElse) {
  std::array<int, 2> inherited{};
  ASSERT_EQ(::pipe(inherited.data()), 0);
  const Descriptor reader(inherited[0]);
  const Descriptor writer(inherited[1]);
  ASSERT_EQ(::fcntl(writer.get(), F_GETFD), 0) << "it would be inherited";
  Command command = shell("echo ready; kill -STOP $$");
  command.descriptors = {{reader.get(), 7}};
  auto child = spawn(std::move(command));
  wait_for_line("ready");
  std::vector<int> numbers;
  const std::string folder = "/proc/" + std::to_string(child->pid()) + "/fd";
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    numbers.push_back(std::stoi(entry.path().filename().native()));
  }
  std::ranges::sort(numbers);
  EXPECT_EQ(numbers, (std::vector<int>{0, 1, 2, 7}));
  EXPECT_EQ(std::filesystem::read_symlink(folder + "/0"), "/dev/null");
}

TEST_F(ChildTest, GivenDescriptorsMayReplaceStandardFilesAndCrossEachOther) {
  std::array<int, 2> a{};
  std::array<int, 2> b{};
  ASSERT_EQ(::pipe(a.data()), 0);
  ASSERT_EQ(::pipe(b.data()), 0);
  Command command = shell("echo to-out; echo to-a >&" + std::to_string(b[1]) + "; echo to-b >&" +
                          std::to_string(a[1]));
  command.descriptors = {{a[1], b[1]}, {b[1], a[1]}};
  auto child = spawn(std::move(command));
  wait_for_exit(*child);
  ::close(a[1]);
  ::close(b[1]);
  std::array<char, 64> text{};
  EXPECT_EQ(std::string(text.data(), static_cast<std::size_t>(::read(a[0], text.data(), 64))),
            "to-a\n");
  EXPECT_EQ(std::string(text.data(), static_cast<std::size_t>(::read(b[0], text.data(), 64))),
            "to-b\n");
  EXPECT_EQ(lines_, Lines{"to-out"});
  ::close(a[0]);
  ::close(b[0]);
}

TEST_F(ChildTest, NoSignalIsBlockedOrIgnoredInAChild) {
  sigset_t blocked;
  sigset_t before;
  ::sigemptyset(&blocked);
  ::sigaddset(&blocked, SIGUSR1);
  ::sigprocmask(SIG_BLOCK, &blocked, &before);
  std::signal(SIGPIPE, SIG_IGN);
  auto child = spawn(shell("echo ready; sleep 1000 & wait"));
  wait_for_line("ready");
  // Signals 32 and 33 belong to the C library, which lets nobody change how they are treated: a
  // machine whose first process ignores them has them ignored everywhere.
  constexpr std::uint64_t kOfTheLibrary = std::uint64_t{3} << 31;
  EXPECT_EQ(std::stoull(status_line(child->pid(), "SigBlk"), nullptr, 16), 0u);
  EXPECT_EQ(std::stoull(status_line(child->pid(), "SigIgn"), nullptr, 16) & ~kOfTheLibrary, 0u);
  sigset_t now;
  ::sigprocmask(SIG_SETMASK, &before, &now);
  EXPECT_EQ(::sigismember(&now, SIGUSR1), 1) << "ours is as it was";
  std::signal(SIGPIPE, SIG_DFL);
}

TEST_F(ChildTest, ChildrenGetBackTheLimitOfOpenFilesThatWasRaised) {
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
  rlimit low = before;
  low.rlim_cur = 200;
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &low), 0);
  EXPECT_EQ(children_.raise_descriptor_limit(), before.rlim_max);
  rlimit raised{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &raised), 0);
  EXPECT_EQ(raised.rlim_cur, before.rlim_max);
  auto child = spawn(shell("ulimit -Sn"));
  wait_for_exit(*child);
  EXPECT_EQ(lines_, Lines{"200"});
  ::setrlimit(RLIMIT_NOFILE, &before);
}

TEST_F(ChildTest, StopSendsTermFirstAndKillsOnlyWhenTheGraceHasPassed) {
  auto child =
      spawn(shell("trap 'echo term' TERM; echo ready; while :; do sleep 1000 & wait; done"));
  wait_for_line("ready");
  start(stop_and_note(*child, kFiveSeconds));
  wait_for_line("term");
  clock_.advance(4999ms);
  poll();
  EXPECT_FALSE(child->status()) << "the grace is not over";
  start(stop_and_note(*child, Grace{60s}));
  poll();
  clock_.advance(1ms);
  run_until([&] { return stopped_.size() == 2; });
  EXPECT_EQ(stopped_, (Lines{"killed by SIGKILL", "killed by SIGKILL"}));
  EXPECT_EQ(clock_.pending(), 0u);
  run(stop_and_note(*child, kFiveSeconds));
  EXPECT_EQ(stopped_.size(), 3u) << "stopping the dead returns at once";
}

TEST_F(ChildTest, AChildThatObeysTermKeepsItsOwnStatusAndNeedsNoTime) {
  auto child = spawn(shell("trap 'exit 0' TERM; echo ready; while :; do sleep 1000 & wait; done"));
  wait_for_line("ready");
  run(stop_and_note(*child, kFiveSeconds));
  EXPECT_EQ(stopped_, Lines{"exit status 0"});
  EXPECT_EQ(clock_.pending(), 0u);
}

TEST_F(ChildTest, AShorterGraceOfASecondCallerCounts) {
  auto child = spawn(shell("trap '' TERM; echo ready; while :; do sleep 1000; done"));
  wait_for_line("ready");
  start(stop_and_note(*child, Grace{60s}));
  poll();
  run(stop_and_note(*child, Grace{0s}));
  EXPECT_EQ(stopped_.back(), "killed by SIGKILL");
}

TEST_F(ChildTest, HelpersOfAChildEndWithItWhetherItIsStoppedOrEndsByItself) {
  auto child = spawn(shell("(trap '' TERM; echo in; exec sleep 1000) & echo $!; wait"));
  wait_for_line("in");
  const auto number = std::ranges::find_if(lines_, [](auto& line) { return line != "in"; });
  if (number == lines_.end()) run_until([&] { return lines_.size() == 2; });
  const std::string first = lines_[0] == "in" ? lines_[1] : lines_[0];
  Witness ignoring(std::stoi(first));
  ASSERT_TRUE(ignoring.alive());
  run(stop_and_note(*child, kFiveSeconds));
  EXPECT_TRUE(ignoring.gone_within(test::kWatchdog));

  lines_.clear();
  auto leaving = spawn(shell("sleep 1000 & echo $!; exit 7"));
  wait_for_exit(*leaving);
  EXPECT_EQ(leaving->status()->code, 7);
  ASSERT_EQ(lines_.size(), 1u);
  EXPECT_TRUE(Witness(std::stoi(lines_[0])).gone_within(test::kWatchdog));
}

TEST_F(ChildTest, DestroyingTheHandleKillsAndChildrenReap) {
  auto child = spawn(shell("trap '' TERM; echo ready; while :; do sleep 1000; done"));
  wait_for_line("ready");
  Witness witness(child->pid());
  start(stop_and_note(*child, Grace{600s}));
  poll();
  child.reset();
  EXPECT_TRUE(witness.gone_within(test::kWatchdog));
  run_until([&] { return children_.alive() == 0; });
  run_until([&] { return stopped_.size() == 1; });
  EXPECT_EQ(stopped_, Lines{"killed by SIGKILL"}) << "who waited for the end is told";
}

TEST_F(ChildTest, NothingStartsOnceShutdownHasBegunAndAllStopTogether) {
  auto stubborn = spawn(shell("trap '' TERM; echo ready; while :; do sleep 1000; done"));
  wait_for_line("ready");
  auto obedient = spawn(shell("exec sleep 1000"));
  start(stop_all_and_note(kFiveSeconds));
  wait_for_exit(*obedient);
  EXPECT_EQ(obedient->status()->text(), "killed by SIGTERM");
  EXPECT_EQ(refusal(shell("true")).code, ErrorCode::draining);
  EXPECT_EQ(children_.alive(), 1u);
  EXPECT_TRUE(stopped_.empty());
  clock_.advance(5s);
  run_until([&] { return !stopped_.empty(); });
  EXPECT_EQ(children_.alive(), 0u);
}

TEST_F(ChildTest, ChildrenThatWereNotStoppedAreKilledAndReapedAtTheEnd) {
  auto others = std::make_unique<Children>(executor(), clock_);
  auto child = others->spawn(shell("trap '' TERM; while :; do sleep 1000; done"));
  ASSERT_TRUE(child);
  others.reset();
  ASSERT_TRUE((*child)->status());
  EXPECT_EQ((*child)->status()->signal, SIGKILL);
  EXPECT_EQ(::kill((*child)->pid(), 0), -1) << "reaped";
}

// B20: the node is killed without a chance to clean up.
TEST_F(ChildTest, WhenTheParentIsKilledItsChildrenEndWithinTwoSeconds) {
  Command command{WERK_PROCESS_PARENT, {}, own_environment()};
  command.on_line = [this](std::string_view line) { lines_.emplace_back(line); };
  auto parent = spawn(std::move(command));
  wait_for_line("running");
  ASSERT_EQ(lines_.size(), 4u);
  std::vector<Witness> witnesses;
  for (std::size_t i = 0; i < 3; ++i) witnesses.emplace_back(std::stoi(lines_[i]));
  for (Witness& witness : witnesses) ASSERT_TRUE(witness.alive());
  ::kill(parent->pid(), SIGKILL);
  for (Witness& witness : witnesses) EXPECT_TRUE(witness.gone_within(2s));
  wait_for_exit(*parent);
}

TEST_F(ChildTest, ACapturedRunTellsBothStreamsApartAndKeepsTheFirstBytes) {
  run(capture(shell("echo out; echo err >&2; exit 1"), 10s, 1000, {}));
  ASSERT_TRUE(captured_);
  EXPECT_EQ(captured_->out, "out\n");
  EXPECT_EQ(captured_->err, "err\n");
  EXPECT_EQ(captured_->status.code, 1);
  EXPECT_FALSE(captured_->cut);
  run(capture(shell("echo 123456789; head -c 100000 /dev/zero"), 10s, 5, {}));
  ASSERT_TRUE(captured_);
  EXPECT_EQ(captured_->out, "12345");
  EXPECT_TRUE(captured_->cut);
  run(capture(Command{"/no/such/program", {}, {}}, 10s, 5, {}));
  EXPECT_EQ(captured_.error().code, ErrorCode::not_found);
}

TEST_F(ChildTest, ACapturedRunEndsWithItsLimitOrItsCaller) {
  start(capture(shell("echo ready; exec sleep 1000"), 10s, 1000, {}));
  run_until([&] { return clock_.pending() == 1; });
  clock_.advance(10s);
  run_until([&] { return captured_ready_; });
  EXPECT_EQ(captured_.error().code, ErrorCode::engine_timeout);
  EXPECT_EQ(captured_.error().message,
            "'/bin/sh -c 'echo ready; exec sleep 1000'' did not end within 10 s");
  EXPECT_EQ(children_.alive(), 0u);
  std::stop_source leave;
  captured_ready_ = false;
  start(capture(shell("exec sleep 1000"), 10s, 1000, leave.get_token()));
  run_until([&] { return children_.alive() == 1; });
  leave.request_stop();
  run_until([&] { return captured_ready_; });
  EXPECT_EQ(captured_.error().code, ErrorCode::cancelled);
  EXPECT_EQ(children_.alive(), 0u);
}

}  // namespace
}  // namespace werk::process
