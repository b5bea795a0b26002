// The node as a service: what it tells whoever started it, and the unit that `werk service` writes.
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <stdexcept>

#include "tests/e2e/test_node.hpp"
#include "tests/support/command_process.hpp"

namespace werk::test {
namespace {

namespace fs = std::filesystem;
namespace json = boost::json;

// Plays systemd's side of the notify protocol.
class NotifySocket {
 public:
  explicit NotifySocket(std::string name) : name_(std::move(name)) {
    socket_ = ::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::memcpy(address.sun_path, name_.data(), name_.size());
    if (name_.front() == '@') address.sun_path[0] = '\0';
    const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + name_.size());
    if (::bind(socket_, reinterpret_cast<const sockaddr*>(&address), size) != 0)
      throw std::runtime_error("no socket at " + name_);
  }
  NotifySocket(const NotifySocket&) = delete;
  NotifySocket& operator=(const NotifySocket&) = delete;
  ~NotifySocket() { ::close(socket_); }

  std::string variable() const { return "NOTIFY_SOCKET=" + name_; }
  std::string next() {
    pollfd watched{socket_, POLLIN, 0};
    constexpr int kWatchdogMs = 60'000;
    if (::poll(&watched, 1, kWatchdogMs) != 1) throw std::runtime_error("nothing was told");
    return take();
  }
  // "" if nothing waits.
  std::string take() {
    std::array<char, 4096> buffer;
    const ssize_t count = ::recv(socket_, buffer.data(), buffer.size(), MSG_DONTWAIT);
    return count < 0 ? "" : std::string(buffer.data(), static_cast<std::size_t>(count));
  }

 private:
  std::string name_;
  int socket_ = -1;
};

void expect_told(const std::string& name) {
  NotifySocket manager(name);
  TestNode node({.environment = {manager.variable()}});
  const std::string ready = manager.next();
  EXPECT_TRUE(ready.starts_with("READY=1\nSTATUS=serves every installed model at http://127."))
      << ready;
  EXPECT_EQ(HttpCall(node.port(), "GET", "/health").status(), 200);
  EXPECT_EQ(node.chat("a").status(), 200);
  const EngineEvent engine = node.engines().expect("spawned");
  EXPECT_EQ(json::serialize(engine.all.at("env")).find("NOTIFY_SOCKET"), std::string::npos);
  EXPECT_EQ(manager.take(), "");
  node.process().signal(SIGTERM);
  EXPECT_TRUE(manager.next().starts_with("STOPPING=1\nSTATUS="));
  EXPECT_EQ(node.process().wait_exit(), 0);
}

TEST(Notify, ReadyIsToldWhenItServesAndStoppingWhenItDrains) {
  const TemporaryFolder folder;
  expect_told((folder / "notify").string());
}

TEST(Notify, AnAbstractSocketIsHeardToo) {
  expect_told("@werk-test-" + std::to_string(::getpid()));
}

TEST(Notify, ANodeThatCantStartIsNeverReady) {
  const TemporaryFolder folder;
  NotifySocket manager((folder / "notify").string());
  NodeProcess node({folder / "home", {}, {manager.variable(), "WERK_LLAMA_SERVER=/nowhere"}});
  EXPECT_EQ(node.wait_exit(), 1);
  EXPECT_EQ(manager.take(), "");
}

TEST(Notify, NobodyThereIsNoReasonToFail) {
  TestNode node({.environment = {"NOTIFY_SOCKET=/nowhere/notify"}});
  EXPECT_EQ(node.chat("a").status(), 200);
}

// ---- the unit

// A systemctl that writes down what it was asked and fails where the test says so.
constexpr std::string_view kSystemctl = R"(#!/bin/sh
echo "$@" >> "$CALLS"
if [ "$2" = "$FAILING" ]; then echo "no bus" >&2; exit 1; fi
)";

class ServiceTest : public ::testing::Test {
 protected:
  ServiceTest() {
    fs::create_directories(folder_ / "bin");
    std::ofstream(folder_ / "bin" / "systemctl") << kSystemctl;
    ::chmod((folder_ / "bin" / "systemctl").c_str(), 0700);
  }

  CommandRun run(std::vector<std::string> words, std::vector<std::string> more = {}) {
    words.insert(words.begin(), "service");
    std::vector<std::string> environment = std::move(more);
    environment.push_back("PATH=" + (folder_ / path_).string());
    environment.push_back("CALLS=" + (folder_ / "calls").string());
    environment.push_back("XDG_CONFIG_HOME=" + (folder_ / "config").string());
    environment.push_back("WERK_HOME=" + (folder_ / "my home").string());
    return run_werk(words, environment);
  }
  fs::path unit_file() const { return folder_ / "config" / "systemd" / "user" / "werk.service"; }
  static std::string read(const fs::path& path) {
    std::ifstream file(path);
    return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  }
  std::string calls() const { return read(folder_ / "calls"); }
  // The value of one key of the unit.
  std::string value(const std::string& key) const {
    const std::string text = read(unit_file());
    const std::size_t at = text.find("\n" + key + "=");
    if (at == std::string::npos) return "none";
    const std::size_t begin = at + key.size() + 2;
    return text.substr(begin, text.find('\n', begin) - begin);
  }
  static void expect_has(const std::string& text, std::string_view part) {
    EXPECT_NE(text.find(part), std::string::npos) << "no " << part << " in\n" << text;
  }

  TemporaryFolder folder_;
  std::string path_ = "bin";
};

TEST_F(ServiceTest, TheUnitHoldsTheOptionsAndNoSecret) {
  std::ofstream(folder_ / "x.toml") << "parallel = 2\n";
  const CommandRun done =
      run({"install", "--port", "8080", "--alias", "claude-*=a $b%c\"d\\", "--drain-timeout", "90s",
           "--config", fs::relative(folder_ / "x.toml").string()},
          {"WERK_API_KEY=secret"});
  EXPECT_EQ(done.status, 0) << done.err;
  EXPECT_EQ(value("Type"), "notify");
  EXPECT_EQ(value("KillMode"), "mixed");
  EXPECT_EQ(value("TimeoutStopSec"), "110");
  EXPECT_EQ(value("Environment"), "\"WERK_HOME=" + (folder_ / "my home").string() + "\"");
  EXPECT_EQ(value("EnvironmentFile"), "-" + (folder_ / "my home" / "environment").string());
  EXPECT_EQ(value("WantedBy"), "default.target");
  const std::string start = value("ExecStart");
  EXPECT_TRUE(
      start.starts_with("\"" + fs::canonical(NodeProcess::program()).string() + "\" \"serve\" "))
      << start;
  expect_has(start, "\"--port=8080\"");
  expect_has(start, R"("--alias=claude-*=a $$b%%c\"d\\")");
  expect_has(start, "\"--config=" + fs::canonical(folder_ / "x.toml").string() + "\"");
  EXPECT_EQ(read(unit_file()).find("secret"), std::string::npos);
  expect_has(done.out, "Not in the unit, though set here: WERK_API_KEY.");
  EXPECT_EQ(calls(), "--user daemon-reload\n--user enable werk.service\n");
}

TEST_F(ServiceTest, SystemdItselfFindsNoFaultInTheUnit) {
  if (::access("/usr/bin/systemd-analyze", X_OK) != 0) GTEST_SKIP() << "no systemd-analyze here";
  EXPECT_EQ(run({"install"}).status, 0);
  CommandProcess::Settings settings;
  settings.program = "/usr/bin/systemd-analyze";
  settings.words = {"--user", "--man=no", "verify", unit_file().string()};
  settings.environment = {"XDG_RUNTIME_DIR=" + folder_.path().string()};
  CommandProcess verify(settings);
  EXPECT_EQ(verify.wait_exit(), 0) << verify.out() << verify.err();
  EXPECT_EQ(verify.err(), "");
}

TEST_F(ServiceTest, NowStartsItAndInstallingAgainReplacesTheUnit) {
  EXPECT_EQ(run({"install", "--port", "1"}).status, 0);
  const CommandRun again = run({"install", "--now", "--port", "2"});
  EXPECT_EQ(again.status, 0) << again.err;
  expect_has(value("ExecStart"), "\"--port=2\"");
  expect_has(calls(), "--user restart werk.service\n");
}

TEST_F(ServiceTest, AUnitOfSomebodyElseIsLeftAsItIs) {
  fs::create_directories(unit_file().parent_path());
  std::ofstream(unit_file()) << "[Service]\nExecStart=/bin/true\n";
  for (const std::string word : {"install", "uninstall"}) {
    const CommandRun done = run({word});
    EXPECT_EQ(done.status, 1);
    expect_has(done.err, "was not written by Werk and is left as it is");
    EXPECT_EQ(read(unit_file()), "[Service]\nExecStart=/bin/true\n");
  }
  EXPECT_EQ(calls(), "");
}

TEST_F(ServiceTest, UninstallStopsItAndRemovesTheUnit) {
  run({"install"});
  fs::remove(folder_ / "calls");
  EXPECT_EQ(run({"uninstall"}).status, 0);
  EXPECT_FALSE(fs::exists(unit_file()));
  EXPECT_EQ(calls(), "--user disable --now werk.service\n--user daemon-reload\n");
  const CommandRun again = run({"uninstall"});
  EXPECT_EQ(again.status, 1);
  expect_has(again.err, "there is no service to remove");
}

TEST_F(ServiceTest, WithoutSystemctlItSaysWhatToDo) {
  path_ = "nothing";
  const CommandRun done = run({"install"});
  EXPECT_EQ(done.status, 0);
  expect_has(done.out, "systemctl --user daemon-reload && systemctl --user enable werk.service");
  EXPECT_TRUE(fs::exists(unit_file()));
}

TEST_F(ServiceTest, ASystemdThatRefusesIsToldWithItsWords) {
  const CommandRun done = run({"install", "--now"}, {"FAILING=daemon-reload"});
  EXPECT_EQ(done.status, 1);
  expect_has(done.err, "no bus");
  expect_has(done.err, "systemctl --user daemon-reload");
  EXPECT_EQ(std::ranges::count(done.err, '\n'), 1) << done.err;
  const CommandRun removed = run({"uninstall"}, {"FAILING=disable"});
  EXPECT_EQ(removed.status, 0);
  EXPECT_EQ(std::ranges::count(removed.err, '\n'), 1) << removed.err;
  EXPECT_FALSE(fs::exists(unit_file()));
}

TEST_F(ServiceTest, OptionsThatNoUnitCanHoldAndWrongOnesAreRefused) {
  EXPECT_EQ(run({"install", "--alias", "a\nb=c"}).status, 1);
  EXPECT_EQ(run({"install", "--port", "many"}).status, 2);
  EXPECT_FALSE(fs::exists(unit_file()));
}

}  // namespace
}  // namespace werk::test
