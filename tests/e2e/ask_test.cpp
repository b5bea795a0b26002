// `werk run` as a person and as a script use it: beside a node, without one, and when things end
// badly. What is counted are the engines.
#include <gtest/gtest.h>

#include <csignal>
#include <fstream>

#include "tests/e2e/command_home.hpp"
#include "tests/e2e/test_node.hpp"

namespace werk::test {
namespace {

namespace json = boost::json;

constexpr std::string_view kWhole = "tok0 tok1 tok2 tok3 tok4 tok5 tok6 tok7 \n";

class RunTest : public CommandHome {
 protected:
  explicit RunTest(json::object engine = {}) : CommandHome("run", std::move(engine)) {}

  std::string prompt_asked() {
    return std::string(asked().at("messages").as_array().back().at("content").as_string());
  }
};

TEST_F(RunTest, WithoutANodeItAnswersWithOneOfItsOwnAndLeavesNothingBehind) {
  install({"a"});
  const CommandRun done = run({"a", "hi"});
  EXPECT_EQ(done.status, 0);
  EXPECT_EQ(done.out, kWhole);
  EXPECT_EQ(done.err, "");
  EXPECT_EQ(spawned(), 1u);
  expect_nothing_left();
}

TEST_F(RunTest, BesideARunningNodeThereIsNoSecondProcessOfItsModel) {
  install({"a"});
  NodeProcess node({home_.path(), {}, environment()});
  node.port();
  for (int i = 0; i < 3; ++i) EXPECT_EQ(run({"a", "hi"}).out, kWhole);
  EXPECT_EQ(spawned(), 1u);
  EXPECT_EQ(HttpCall(node.port(), "GET", "/health").status(), 200) << "the node stays";
}

TEST_F(RunTest, SeveralAtOnceWithoutANodeAreAllAnswered) {
  install({"a"});
  const std::vector<int> statuses = run_callers(4, [this](std::size_t) {
    const CommandRun done = run({"a", "hi"});
    EXPECT_EQ(done.out, kWhole) << done.err;
    return done.status;
  });
  EXPECT_EQ(statuses, std::vector<int>(4, 0));
  expect_nothing_left();
}

TEST_F(RunTest, ThePromptIsTheWordsThenWhatComesOnStandardInput) {
  install({"a"});
  NodeProcess node({home_.path(), {}, environment()});
  node.port();
  run({"a", "why", "is", "the sky blue"});
  EXPECT_EQ(prompt_asked(), "why is the sky blue");
  run({"a"}, "from a pipe\n\n", Around::pipes);
  EXPECT_EQ(prompt_asked(), "from a pipe");
  run({"a", "-"}, "from a dash", Around::pipes);
  EXPECT_EQ(prompt_asked(), "from a dash");
  run({"a", "sum up:"}, "line 1\nline 2\n", Around::pipes);
  EXPECT_EQ(prompt_asked(), "sum up:\n\nline 1\nline 2");
  run({"a", "only this"}, "", Around::pipes);
  EXPECT_EQ(prompt_asked(), "only this");
  run({"words with a blank are no model"});
  EXPECT_EQ(prompt_asked(), "words with a blank are no model");
  run({"--model", "a", "list"});
  EXPECT_EQ(prompt_asked(), "list");
  run({"a", "serve"});
  EXPECT_EQ(prompt_asked(), "serve") << "a command's name is no command in its place";
  run({"a", "--", "--help me"});
  EXPECT_EQ(prompt_asked(), "--help me");
}

TEST_F(RunTest, OptionsReachTheEngine) {
  install({"a"});
  run({"a", "hi", "--system", "Be brief.", "--max-tokens", "5", "--temperature", "0.5"});
  const json::object body = asked();
  EXPECT_EQ(body.at("max_tokens").as_int64(), 5);
  EXPECT_EQ(body.at("temperature").to_number<double>(), 0.5);
  EXPECT_EQ(body.at("messages").as_array().front(),
            json::value({{"role", "system"}, {"content", "Be brief."}}));
}

TEST_F(RunTest, JsonIsTheWholeAnswerOfTheDialect) {
  install({"a"});
  const CommandRun done = run({"a", "hi", "--json"});
  const json::value answer = json::parse(done.out);
  EXPECT_EQ(answer.at("object").as_string(), "chat.completion");
  EXPECT_EQ(answer.at_pointer("/choices/0/message/content").as_string(),
            kWhole.substr(0, kWhole.size() - 1));
}

TEST_F(RunTest, VerboseTellsTokensAndTimesOnStandardError) {
  install({"a"});
  const CommandRun done = run({"a", "hi", "--verbose"});
  EXPECT_EQ(done.out, kWhole);
  expect_has(done.err, "prompt 32 tokens");
  expect_has(done.err, "answer 8 tokens");
  expect_one_line(done.err);
}

TEST_F(RunTest, WithoutANamedModelTheOnlyOneIsAsked) {
  install({"a"});
  EXPECT_EQ(run({"hi there"}).out, kWhole);
  install({"b"});
  const CommandRun two = run({"hi there"});
  EXPECT_EQ(two.status, 1);
  expect_has(two.err, "2 models are installed and none is the default; name one: a, b");
  expect_one_line(two.err);
  NodeProcess node({home_.path(), {"--model", "b"}, environment()});
  node.port();
  EXPECT_EQ(run({"hi there"}).out, kWhole) << "the node's default";
}

TEST_F(RunTest, WhatCantBeAskedIsOneLineWithTheWayOut) {
  const CommandRun empty = run({"a", "hi"});
  EXPECT_EQ(empty.status, 1);
  expect_has(empty.err, "`werk pull smollm2`");
  expect_one_line(empty.err);
  install({"coder"});
  const CommandRun unknown = run({"codr", "hi"});
  EXPECT_EQ(unknown.status, 1);
  expect_has(unknown.err, "did you mean coder?");
  expect_one_line(unknown.err);
  const CommandRun nothing = run({"coder"});
  EXPECT_EQ(nothing.status, 2);
  expect_has(nothing.err, "werk run coder");
  expect_one_line(nothing.err);
  const CommandRun binary = run({"coder"}, "\xff\xfe", Around::pipes);
  EXPECT_EQ(binary.status, 1);
  expect_has(binary.err, "UTF-8");
  const CommandRun nowhere = run({"coder", "hi", "--url", "http://127.0.0.1:1"});
  EXPECT_EQ(nowhere.status, 1);
  expect_has(nowhere.err, "http://127.0.0.1:1 can't be reached");
  expect_one_line(nowhere.err);
  EXPECT_EQ(run({"coder", "hi", "--max-tokens", "many"}).status, 2);
  EXPECT_EQ(engines_.count("spawned"), 0u);
  expect_nothing_left();
}

TEST_F(RunTest, AnotherNodeIsAskedByItsAddress) {
  install({"a"});
  std::vector<std::string> with_key = environment();
  with_key.push_back("WERK_API_KEY=secret");
  NodeProcess node({home_.path(), {}, with_key});
  const std::string url = "http://127.0.0.1:" + std::to_string(node.port()) + "/";
  CommandProcess::Settings elsewhere = settings({"a", "hi", "--url", url});
  const TemporaryFolder other;
  elsewhere.environment.back() = "WERK_HOME=" + other.path().string();
  CommandProcess refused(elsewhere);
  EXPECT_EQ(refused.wait_exit(), 1);
  expect_has(refused.err(), "WERK_API_KEY");
  elsewhere.environment.push_back("WERK_API_KEY=secret");
  CommandProcess served(elsewhere);
  EXPECT_EQ(served.wait_exit(), 0) << served.err();
  EXPECT_EQ(served.out(), kWhole);
}

TEST_F(RunTest, ANodeThatCantStartIsToldInOneLineAndLeavesNothing) {
  install({"a"});
  CommandProcess::Settings broken = settings({"a", "hi"});
  broken.environment.push_back("WERK_LLAMA_SERVER_CPU=/nowhere/llama-server");
  CommandProcess command(broken);
  EXPECT_EQ(command.wait_exit(), 1);
  expect_has(command.err(), "/nowhere/llama-server");
  expect_one_line(command.err());
  expect_nothing_left();
}

TEST_F(RunTest, ItsOwnNodeLoadsNothingButTheModelThatIsAsked) {
  install({"asked", "default", "pinned"});
  std::ofstream(home_ / "werk.toml") << "model = \"default\"\n[models.\"pinned\"]\npin = true\n";
  const CommandRun done = run({"asked", "hi"});
  EXPECT_EQ(done.out, kWhole) << done.err;
  EXPECT_EQ(spawned(), 1u);
  EXPECT_EQ(run({"the default one"}).status, 0);
  EXPECT_EQ(spawned(), 2u);
}

TEST_F(RunTest, OptionsThatHaveNoEffectOnARunningNodeAreTold) {
  install({"a"});
  NodeProcess node({home_.path(), {}, environment()});
  node.port();
  const CommandRun done = run({"--model", "a", "hi", "--ctx-size", "512"});
  EXPECT_EQ(done.out, kWhole);
  expect_has(done.err, "--ctx-size has no effect on it");
  expect_one_line(done.err);
}

class HeldRunTest : public RunTest {
 protected:
  HeldRunTest() : RunTest({{"reply", {{"tokens", 1000}, {"hold_after", 6}}}}) {}
};

TEST_F(HeldRunTest, TextIsShownAsItArrivesAndCtrlCEndsTheAnswerAndTheNode) {
  install({"a"});
  CommandProcess command(settings({"a", "hi"}));
  command.wait_for("tok0 tok1 ");
  command.signal(SIGINT);
  EXPECT_EQ(command.wait_exit(), 130);
  EXPECT_EQ(command.err(), "");
  expect_nothing_left();
}

TEST_F(HeldRunTest, CtrlCFreesTheSlotOfARunningNode) {
  install({"a"});
  NodeProcess node({home_.path(), {}, environment()});
  node.port();
  CommandProcess command(settings({"a", "hi"}, Around::terminal));
  command.wait_for("tok0 tok1 ");
  command.type("\x03");
  EXPECT_EQ(command.wait_exit(), 130);
  engines_.expect("closed");
  EXPECT_EQ(engines_.count("spawned"), 1u);
}

TEST_F(HeldRunTest, KilledOutrightItLeavesNothingBehind) {
  install({"a"});
  CommandProcess command(settings({"a", "hi"}));
  command.wait_for("tok0 ");
  command.signal(SIGKILL);
  EXPECT_EQ(command.wait_exit(), 128 + SIGKILL);
  EXPECT_TRUE(engines_.none_living_within(std::chrono::seconds(10)));
  EXPECT_EQ(CommandProcess(settings({"no-such-model", "hi"})).wait_exit(), 1)
      << "the home is free again";
}

TEST_F(HeldRunTest, ANodeThatDiesInMidAnswerIsAnErrorBehindWhatCame) {
  install({"a"});
  NodeProcess node({home_.path(), {}, environment()});
  node.port();
  CommandProcess command(settings({"a", "hi"}));
  command.wait_for("tok0 ");
  node.signal(SIGKILL);
  EXPECT_EQ(command.wait_exit(), 1);
  expect_has(command.err(), "broke off");
  expect_one_line(command.err());
  EXPECT_TRUE(command.out().ends_with("\n"));
}

TEST_F(HeldRunTest, AnEngineThatDiesInMidAnswerIsToldInTheNodesWords) {
  install({"a"});
  CommandProcess command(settings({"a", "hi"}));
  command.wait_for("tok0 ");
  engines_.send(0, {{"do", "kill_self"}});
  EXPECT_EQ(command.wait_exit(), 1);
  expect_has(command.err(), "SIGKILL");
  expect_one_line(command.err());
  expect_nothing_left();
}

class LinesRunTest : public RunTest {
 protected:
  LinesRunTest()
      : RunTest({{"reply",
                  {{"content", {"one\n", "two\n", "three\n"}},
                   {"hold_after", 6},
                   {"reasoning", {"let me", " see"}}}}}) {}
};

TEST_F(LinesRunTest, AReaderThatHasEnoughEndsItQuietly) {
  install({"a"});
  CommandProcess::Settings shell;
  shell.program = "/bin/sh";
  shell.words = {"-c", "{ \"$0\" run a hi; echo \"status $?\" >&2; } | head -1",
                 NodeProcess::program()};
  shell.environment = environment();
  CommandProcess command(shell);
  command.wait_for("one\n");
  const EngineEvent asked = generation();
  engines_.release(asked.engine, asked.request());
  EXPECT_EQ(command.wait_exit(), 0);
  EXPECT_EQ(command.out(), "one\n");
  EXPECT_EQ(command.err(), "status 0\n");
  expect_nothing_left();
}

class ThinkingRunTest : public RunTest {
 protected:
  ThinkingRunTest()
      : RunTest(
            {{"reply", {{"content", {"ans", "wer\x1b[31m"}}, {"reasoning", {"let me", " see"}}}}}) {
  }
};

TEST_F(ThinkingRunTest, ReasoningIsDimmedOnATerminalAndLeftOutOfAPipeUnlessAsked) {
  install({"a"});
  CommandProcess terminal(settings({"a", "hi"}, Around::terminal));
  EXPECT_EQ(terminal.wait_exit(), 0);
  expect_has(terminal.out(), "\x1b[2mlet me see\x1b[0m\r\n\r\nans");
  // What a model says can't steer the terminal.
  expect_has(terminal.out(), "wer?[31m\r\n");
  const CommandRun piped = run({"a", "hi"});
  EXPECT_EQ(piped.out, "answer\x1b[31m\n");
  EXPECT_EQ(piped.err, "");
  const CommandRun shown = run({"a", "hi", "--reasoning"});
  EXPECT_EQ(shown.out, "answer\x1b[31m\n");
  EXPECT_EQ(shown.err, "let me see\n\n");
}

TEST_F(ThinkingRunTest, ColoursAreLeftOutWhereTheyArentWanted) {
  install({"a"});
  CommandProcess::Settings plain = settings({"a", "hi"}, Around::terminal);
  plain.environment.push_back("NO_COLOR=1");
  CommandProcess command(plain);
  EXPECT_EQ(command.wait_exit(), 0);
  expect_has(command.out(), "let me see\r\n\r\nans");
  EXPECT_EQ(command.out().find('\x1b'), std::string::npos) << command.out();
}

class LoadingRunTest : public RunTest {
 protected:
  LoadingRunTest() : RunTest({{"start", "hold"}}) {}
};

TEST_F(LoadingRunTest, ALongLoadIsToldOnATerminalAndErasedAgain) {
  install({"a"});
  CommandProcess command(settings({"a", "hi"}, Around::terminal));
  const EngineEvent engine = engines_.expect("spawned");
  command.wait_for("loading a, 1 s");
  engines_.ready(engine.engine);
  command.wait_for("\r\x1b[K");
  EXPECT_EQ(command.wait_exit(), 0);
  expect_has(command.out(), "tok0 tok1");
}

TEST_F(LoadingRunTest, CtrlCEndsALoadToo) {
  install({"a"});
  CommandProcess command(settings({"a", "hi"}));
  engines_.expect("spawned");
  command.signal(SIGINT);
  EXPECT_EQ(command.wait_exit(), 130);
  EXPECT_TRUE(engines_.none_living_within(std::chrono::seconds(10)));
}

}  // namespace
}  // namespace werk::test
