// `werk top` at a terminal and without one, over a real node with fake engines.
#include <gtest/gtest.h>
#include <pty.h>
#include <unistd.h>

#include <csignal>

#include "tests/e2e/test_node.hpp"
#include "tests/support/command_process.hpp"
#include "tests/support/screen_text.hpp"

namespace werk::test {
namespace {

namespace json = boost::json;

constexpr std::string_view kCtrlC = "\x03";
constexpr std::string_view kCtrlZ = "\x1a";

std::vector<std::string> environment_for(TestNode& node, const std::string& term) {
  node.port();  // once it serves
  return {"WERK_HOME=" + node.home().string(), "TERM=" + term, "LC_ALL=C.UTF-8"};
}

CommandProcess::Settings settings_for(TestNode& node, std::vector<std::string> words, Around around,
                                      const std::string& term = "vt100") {
  words.insert(words.begin(), "top");
  return {std::move(words), environment_for(node, term), around, {}};
}

// How a terminal is set that nobody has touched.
termios untouched_modes() {
  int master = -1;
  int slave = -1;
  termios modes{};
  if (::openpty(&master, &slave, nullptr, nullptr, nullptr) != 0) return modes;
  ::tcgetattr(slave, &modes);
  ::close(slave);
  ::close(master);
  return modes;
}

// `werk top` on a terminal, as a person sees it.
class Top {
 public:
  explicit Top(TestNode& node)
      : process_(settings_for(node, {"--interval", "100ms"}, Around::terminal)) {}

  CommandProcess& process() { return process_; }
  std::string screen() const { return screen_text(process_.out()); }
  void await(std::string_view text) {
    process_.wait_until(
        [&](const std::string& out) { return screen_text(out).find(text) != std::string::npos; });
  }
  void await_gone(std::string_view text) {
    process_.wait_until(
        [&](const std::string& out) { return screen_text(out).find(text) == std::string::npos; });
  }
  // The screen's line that begins with the text, once there is one.
  std::string line(std::string_view begin) {
    const std::string start = "\n" + std::string(begin);
    await(start);
    const std::string text = screen();
    const std::size_t at = text.find(start) + 1;
    return text.substr(at, text.find('\n', at) - at);
  }
  void expect_terminal_as_it_was() const {
    const termios before = untouched_modes();
    const termios now = process_.terminal_modes();
    EXPECT_EQ(now.c_lflag, before.c_lflag);
    EXPECT_EQ(now.c_iflag, before.c_iflag);
    EXPECT_EQ(now.c_oflag, before.c_oflag);
  }
  void quit() {
    process_.type("q");
    EXPECT_EQ(process_.wait_exit(), 0);
    expect_terminal_as_it_was();
  }

 private:
  CommandProcess process_;
};

HttpCall load(TestNode& node, std::string_view model) {
  return HttpCall(node.port(), "POST", "/werk/v1/models/" + std::string(model) + "/load", "{}");
}

TEST(Top, ShowsARuntimeAndACallAndQuitsLeavingTheTerminalAsItWas) {
  TestNode node({.engine = {{"reply", {{"gated", true}}}}, .arguments = {"--parallel", "2"}});
  HttpCall call = node.chat("a", R"("stream":true)");
  const EngineEvent generation = node.generation();
  Top top(node);
  top.await("Calls active 1");
  const std::string row = top.line("a  ");
  EXPECT_NE(row.find("ready"), std::string::npos) << row;
  EXPECT_NE(row.find("1/2"), std::string::npos) << row;
  top.await(" prompt ");
  node.engines().step(generation.engine, generation.request(), 2);
  top.await(" generating ");
  node.engines().finish(generation.engine, generation.request());
  call.whole_body();
  top.await("Calls active 0  served 1");
  top.await(" 0/2 ");
  top.await_gone(" generating ");
  top.await(" served    ");
  EXPECT_EQ(top.process().terminal_modes().c_lflag & ECHO, 0u);
  top.quit();
}

TEST(Top, FollowsTheSizeOfTheTerminal) {
  TestNode node({});
  EXPECT_EQ(load(node, "a").status(), 200);
  Top top(node);
  top.await("ENGINE");
  top.process().resize(40, 120);
  top.await("  PID\n");
  top.process().resize(24, 60);
  top.await_gone("ENGINE");
  top.await("MODEL");
  top.process().resize(3, 10);
  top.await("too small");
  top.process().resize(24, 80);
  top.await("ENGINE");
  top.quit();
}

TEST(Top, ANodeThatDiesIsSaidAndOneThatComesBackIsShownAgain) {
  TestNode node({});
  EXPECT_EQ(load(node, "a").status(), 200);
  Top top(node);
  top.await("  ready  ");
  node.process().signal(SIGKILL);
  node.process().wait_exit();
  top.await("no answer for");
  EXPECT_NE(top.line("a  ").find("ready"), std::string::npos) << "the last picture stays";
  top.process().type("h");
  top.await("page up and down");
  top.process().type("h");
  top.await_gone("page up and down");
  // On another port: the home says where.
  node.start_again({});
  node.port();
  top.await("  ready  ");
  top.await("nothing is loaded");
  top.quit();
}

TEST(Top, KeysWorkWhileTheNodeIsSilent) {
  TestNode node({});
  Top top(node);
  top.await("  ready  ");
  node.process().signal(SIGSTOP);
  top.await("the node is silent");
  top.process().type("?");
  top.await("page up and down");
  top.process().type("x/none");
  top.await("filter: none_");
  node.process().signal(SIGCONT);
  top.await("  ready  ");
  node.process().signal(SIGSTOP);
  top.await("the node is silent");
  top.process().type("\n");
  top.quit();
  node.process().signal(SIGCONT);
}

TEST(Top, PinsAndUnloadsByKeys) {
  TestNode node({.engine = {{"reply", {{"gated", true}}}}});
  EXPECT_EQ(load(node, "a").status(), 200);
  Top top(node);
  top.line("a  ");
  top.process().type("p");
  top.await("a is pinned");
  top.await(" yes");
  top.process().type("p");
  top.await("a is no longer pinned");
  top.await_gone(" yes");
  HttpCall call = node.chat("a");
  const EngineEvent generation = node.generation();
  top.await(" 1/1 ");
  top.process().type("u");
  top.await("a has 1 call. Unload it once it has ended? (y/n)");
  top.process().type("n");
  top.await_gone("(y/n)");
  EXPECT_EQ(runtime_of(node.observability(), "a").at("state").as_string(), "ready");
  top.process().type("uy");
  node.await_state("a", "closing");
  top.await("closing");
  node.engines().finish(generation.engine, generation.request());
  EXPECT_EQ(call.status(), 200);
  top.await("a is unloaded");
  top.await("nothing is loaded");
  top.quit();
}

TEST(Top, WhatTheNodeRefusesIsSaid) {
  TestNode node({});
  EXPECT_EQ(load(node, "a").status(), 200);
  Top top(node);
  top.line("a  ");
  node.process().signal(SIGKILL);
  node.process().wait_exit();
  top.process().type("p");
  const std::string foot = top.line("http://");
  EXPECT_NE(foot.find("can't be reached"), std::string::npos) << foot;
  top.quit();
}

TEST(Top, EndsBySignalsAndGivesTheTerminalBack) {
  TestNode node({});
  for (const int number : {SIGTERM, SIGHUP, SIGQUIT}) {
    Top top(node);
    top.await("  ready  ");
    top.process().signal(number);
    EXPECT_EQ(top.process().wait_exit(), 128 + number);
    top.expect_terminal_as_it_was();
  }
  Top top(node);
  top.await("  ready  ");
  top.process().type(kCtrlC);
  EXPECT_EQ(top.process().wait_exit(), 130);
  top.expect_terminal_as_it_was();
}

TEST(Top, CtrlZGivesTheTerminalBackAndFgShowsTheScreenAgain) {
  TestNode node({});
  const std::string program = NodeProcess::program();
  CommandProcess shell(
      {{"-m", "-c", "\"$0\" top; echo \"stopped: $?\"; stty -a; fg; echo \"ended: $?\"", program},
       environment_for(node, "vt100"),
       Around::terminal,
       "/bin/sh"});
  const auto await = [&shell](std::string_view text) {
    shell.wait_until(
        [&](const std::string& out) { return screen_text(out).find(text) != std::string::npos; });
  };
  await("  ready  ");
  shell.type(kCtrlZ);
  shell.wait_for("stopped: ");
  shell.wait_for(" icanon");
  shell.wait_for(" echo ");
  shell.wait_for("MODEL");
  await("nothing is loaded");
  shell.type("q");
  shell.wait_for("ended: 0");
  EXPECT_EQ(shell.wait_exit(), 0);
}

TEST(Top, ATerminalThatCannotShowItIsToldOfOnce) {
  TestNode node({});
  for (const char* term : {"dumb", "no-such-terminal", ""}) {
    CommandProcess top(settings_for(node, {}, Around::terminal, term));
    EXPECT_EQ(top.wait_exit(), 1);
    EXPECT_NE(top.out().find("--once"), std::string::npos) << top.out();
    EXPECT_EQ(top.out().find('\x1b'), std::string::npos) << top.out();
  }
  CommandProcess piped(settings_for(node, {}, Around::pipes));
  EXPECT_EQ(piped.wait_exit(), 1);
  EXPECT_EQ(piped.err(), "werk: top needs a terminal; `werk top --once` prints the same once\n");
}

TEST(Top, OncePrintsTheSameAsTextAndAsJson) {
  TestNode node({});
  EXPECT_EQ(load(node, "a").status(), 200);
  EXPECT_EQ(node.chat("a").status(), 200);
  CommandProcess text(settings_for(node, {"--once", "--interval", "100ms"}, Around::nothing));
  EXPECT_EQ(text.wait_exit(), 0) << text.err();
  EXPECT_NE(text.out().find("Calls active 0  served 1"), std::string::npos) << text.out();
  EXPECT_NE(text.out().find("\na  "), std::string::npos) << text.out();
  EXPECT_EQ(text.out().find('\x1b'), std::string::npos);
  CommandProcess once(
      settings_for(node, {"--once", "--json", "--interval", "100ms"}, Around::nothing));
  EXPECT_EQ(once.wait_exit(), 0) << once.err();
  const json::object report = json::parse(once.out()).as_object();
  EXPECT_EQ(report.at("schema").to_number<int>(), 1);
  EXPECT_TRUE(report.at("address").as_string().starts_with("http://127.0.0.1:"));
  EXPECT_EQ(report.at("totals").at("calls_served").to_number<int>(), 1);
  ASSERT_EQ(report.at("runtimes").as_array().size(), 1u);
  const json::object& runtime = report.at("runtimes").at(0).as_object();
  EXPECT_EQ(runtime.at("model").as_string(), "a");
  EXPECT_EQ(runtime.at("state").as_string(), "ready");
  EXPECT_EQ(runtime.at("calls").to_number<int>(), 1);
  EXPECT_TRUE(runtime.contains("output_tokens_per_second"));
  EXPECT_GT(runtime.at("memory_bytes").to_number<std::uint64_t>(), 0u);
  EXPECT_TRUE(report.at("calls").as_array().empty());
  ASSERT_EQ(report.at("recent_calls").as_array().size(), 1u);
  EXPECT_EQ(report.at("recent_calls").at(0).at("outcome").as_string(), "served");
}

TEST(Top, ANodeElsewhereIsReachedByItsAddressAndAWrongKeyIsToldBeforeAnyScreen) {
  TestNode node({.environment = {"WERK_API_KEY=right"}});
  const std::string url = "http://127.0.0.1:" + std::to_string(node.port());
  const TemporaryFolder elsewhere;
  const auto settings = [&](const std::string& key, Around around) -> CommandProcess::Settings {
    return {{"top", "--url", url, "--interval", "100ms"},
            {"WERK_HOME=" + elsewhere.path().string(), "WERK_API_KEY=" + key, "TERM=vt100"},
            around,
            {}};
  };
  CommandProcess wrong(settings("wrong", Around::terminal));
  EXPECT_EQ(wrong.wait_exit(), 1);
  EXPECT_NE(wrong.out().find("WERK_API_KEY"), std::string::npos) << wrong.out();
  EXPECT_EQ(wrong.out().find('\x1b'), std::string::npos);
  CommandProcess right(settings("right", Around::terminal));
  right.wait_until(
      [&](const std::string& out) { return screen_text(out).find(url) != std::string::npos; });
  right.type("q");
  EXPECT_EQ(right.wait_exit(), 0);
}

}  // namespace
}  // namespace werk::test
