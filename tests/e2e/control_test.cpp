// A person controls the running node: over HTTP and with the commands, while clients use it.
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <chrono>
#include <thread>

#include "tests/e2e/chat_answer.hpp"
#include "tests/e2e/test_node.hpp"

namespace werk::test {
namespace {

namespace json = boost::json;

HttpCall act(TestNode& node, std::string_view model, std::string_view what,
             std::string_view body = "{}") {
  return HttpCall(node.port(), "POST",
                  "/werk/v1/models/" + std::string(model) + "/" + std::string(what), body);
}

CommandRun werk(TestNode& node, const std::vector<std::string>& words,
                std::vector<std::string> environment = {}) {
  node.port();  // once it serves
  environment.push_back("WERK_HOME=" + node.home().string());
  return run_werk(words, environment);
}

bool is_whole_stream(TestNode& node, std::string_view model) {
  HttpCall call = node.chat(model, R"("stream":true)");
  const ChatAnswer answer = read_stream(call.whole_body());
  return call.status() == 200 && call.end() == BodyEnd::proper && answer.done &&
         answer.error.empty() && answer.finish_reason == "stop";
}

TEST(Control, UnloadsLoadsAndPinsWhileSixClientsStreamLoseNoCall) {
  const std::vector<std::string> models = {"a", "b", "c"};
  TestNode node({.models = {{"a"}, {"b"}, {"c"}},
                 .engine = {{"reply", {{"pace_us", 2'000}}}},
                 .arguments = {"--parallel", "4", "--max-resident", "2"}});
  constexpr int kTurns = 6;
  const std::vector<int> results = run_callers(7, [&](std::size_t caller) {
    int good = 0;
    for (int turn = 0; turn < kTurns; ++turn) {
      const std::string& model = models[(caller + static_cast<std::size_t>(turn)) % 3];
      if (caller < 6) {
        good += is_whole_stream(node, model) ? 1 : 0;
        continue;
      }
      bool done = true;
      for (const std::string_view what : {"pin", "load", "unload", "load", "unpin"})
        done = done && act(node, model, what).status() == 200;
      good += done ? 1 : 0;
    }
    return good;
  });
  EXPECT_EQ(results, std::vector<int>(7, kTurns)) << node.process().log();
}

TEST(Control, AnIdleTimeoutCutsNoCallAndTheNextOneLoadsTheModelAgain) {
  TestNode node({.arguments = {"--parallel", "2", "--idle-timeout", "1ms"}});
  // So short that engines come and go between the calls.
  const std::vector<int> results = run_callers(6, [&node](std::size_t) {
    int good = 0;
    for (int turn = 0; turn < 4; ++turn) good += is_whole_stream(node, "a") ? 1 : 0;
    return good;
  });
  EXPECT_EQ(results, std::vector<int>(6, 4)) << node.process().log();
  node.await_no_runtimes();
  EXPECT_TRUE(is_whole_stream(node, "a"));
  EXPECT_GE(node.engines().count("spawned"), 2u);
}

TEST(Control, AHungEngineThatIsUnloadedHoldsUpNoOtherModelAndItsCallerGetsAnError) {
  TestNode node(
      {.models = {{"hung"}, {"other"}},
       .engine = {
           {"models", {{"models/hung/", {{"reply", {{"hold", true}}}, {"ignore_term", true}}}}}}});
  HttpCall call = node.chat("hung");
  const EngineEvent generation = node.generation();
  HttpCall waits = act(node, "hung", "unload");
  node.await_state("hung", "closing");
  EXPECT_EQ(act(node, "other", "load").status(), 200);
  HttpCall now = act(node, "hung", "unload", R"({"now":true})");
  EXPECT_EQ(call.status(), 503) << "its caller is told before the engine has ended";
  EXPECT_EQ(error_text(read_whole(call.whole_body()), "code"), "unloaded");
  EXPECT_EQ(node.chat("other").status(), 200);
  node.engines().expect_from(generation.engine, "gone");
  EXPECT_EQ(now.status(), 200);
  EXPECT_EQ(waits.status(), 200);
  EXPECT_EQ(node.engines().count("spawned"), 2u);
}

TEST(Control, AnUnloadWaitsForItsCallsAndTheNextCallLoadsTheModelAgain) {
  TestNode node({.engine = {{"reply", {{"gated", true}}}}});
  HttpCall running = node.chat("a", R"("stream":true)");
  const EngineEvent first = node.generation();
  HttpCall unload = act(node, "a", "unload");
  node.await_state("a", "closing");
  HttpCall late = node.chat("a");
  node.await_waiting(1);
  node.engines().finish(first.engine, first.request());
  EXPECT_TRUE(read_stream(running.whole_body()).done);
  EXPECT_EQ(unload.whole_body(), R"({"model":"a","unloaded":1})");
  const EngineEvent second = node.generation();
  EXPECT_NE(second.engine, first.engine);
  node.engines().finish(second.engine, second.request());
  EXPECT_EQ(late.status(), 200);
}

TEST(Control, AnUnloadNowEndsAStreamWithAnErrorEventAndNeverInSilence) {
  TestNode node({.engine = {{"reply", {{"gated", true}}}}});
  HttpCall running = node.chat("a", R"("stream":true)");
  const EngineEvent generation = node.generation();
  node.engines().step(generation.engine, generation.request(), 2);
  running.body_until("tok1");
  const CommandRun unload = werk(node, {"unload", "a", "--now"});
  EXPECT_EQ(unload.status, 0) << unload.err;
  EXPECT_EQ(unload.out, "a is unloaded\n");
  const ChatAnswer answer = read_stream(running.whole_body());
  EXPECT_EQ(error_text(answer, "code"), "unloaded");
  EXPECT_FALSE(answer.done);
  EXPECT_EQ(running.end(), BodyEnd::cut);
}

TEST(Control, APinnedModelKeepsTheOnlyPlace) {
  TestNode node({.models = {{"a"}, {"b"}}, .arguments = {"--max-resident", "1"}});
  EXPECT_EQ(werk(node, {"pin", "a"}).out, "a is pinned; it is not loaded yet (`werk load a`)\n");
  EXPECT_EQ(werk(node, {"load", "a"}).status, 0);
  const CommandRun refused = werk(node, {"load", "b"});
  EXPECT_EQ(refused.status, 1);
  EXPECT_NE(refused.err.find("(a)"), std::string::npos) << refused.err;
  EXPECT_NE(refused.err.find("werk unpin"), std::string::npos) << refused.err;
  EXPECT_NE(werk(node, {"ps"}).out.find("yes"), std::string::npos);
  EXPECT_EQ(werk(node, {"unpin", "a"}).out, "a is no longer pinned\n");
  EXPECT_EQ(werk(node, {"load", "b"}).status, 0);
}

TEST(Control, AStopEndsTheNodeAsASignalDoesAndARunningStreamWhole) {
  TestNode node({.engine = {{"reply", {{"gated", true}}}}});
  HttpCall running = node.chat("a", R"("stream":true)");
  const EngineEvent generation = node.generation();
  CommandRun stop;
  std::jthread stopping([&] { stop = werk(node, {"stop"}); });
  node.await_observability(
      [](const json::object& page) { return page.at("node").at("draining").as_bool(); });
  EXPECT_EQ(node.chat("a").status(), 503);
  node.engines().finish(generation.engine, generation.request());
  EXPECT_TRUE(read_stream(running.whole_body()).done);
  EXPECT_EQ(node.process().wait_exit(), 0);
  stopping.join();
  EXPECT_EQ(stop.status, 0) << stop.err;
  EXPECT_EQ(stop.out, "the node has ended\n");
  const CommandRun nobody = werk(node, {"ps"});
  EXPECT_EQ(nobody.status, 1);
  EXPECT_NE(nobody.err.find("`werk serve`"), std::string::npos) << nobody.err;
}

TEST(Control, LogsAreFollowedAcrossARestartOfTheEngineToTheEndOfTheNode) {
  TestNode node({});
  HttpCall follow = node.get("/werk/v1/logs/a?follow=true");
  EXPECT_EQ(follow.status(), 200);
  EXPECT_EQ(act(node, "a", "load").status(), 200);
  follow.body_until("=== ");
  node.kill_engine(0);
  EXPECT_EQ(act(node, "a", "load").status(), 200);
  EXPECT_EQ(werk(node, {"stop"}).status, 0);
  const std::string text = follow.whole_body();
  EXPECT_EQ(follow.end(), BodyEnd::proper) << "the stream ends with the node, and in order";
  const std::size_t first = text.find("=== ");
  ASSERT_NE(first, std::string::npos);
  EXPECT_NE(text.find("=== ", first + 1), std::string::npos) << text;
  EXPECT_EQ(text.find(node.home().string()), std::string::npos) << "paths leave masked";
  const CommandRun files = werk(node, {"logs", "a"});
  EXPECT_EQ(files.status, 0);
  EXPECT_NE(files.out.find("=== ", files.out.find("=== ") + 1), std::string::npos) << files.out;
  EXPECT_NE(files.out.find(node.home().string()), std::string::npos) << "files have them whole";
  EXPECT_EQ(files.out.find("LLAMA_API_KEY"), std::string::npos);
  struct stat facts {};
  ASSERT_EQ(::stat((node.home() / "logs" / "a.log").c_str(), &facts), 0);
  EXPECT_EQ(facts.st_mode & 0777u, 0600u);
}

TEST(Control, AFailedLoadNamesTheCommandThatShowsWhatTheEnginePrinted) {
  TestNode node({.engine = {{"start", "exit"}, {"stderr", "no such luck\n"}}});
  const CommandRun load = werk(node, {"load", "a"});
  EXPECT_EQ(load.status, 1);
  EXPECT_NE(load.err.find("`werk logs a`"), std::string::npos) << load.err;
  EXPECT_NE(werk(node, {"logs", "a"}).out.find("no such luck"), std::string::npos);
  EXPECT_NE(werk(node, {"logs"}).out.find("==> a <=="), std::string::npos);
}

TEST(Control, ANodeElsewhereIsReachedByItsAddressAndOnlyWithItsKey) {
  TestNode node({.environment = {"WERK_API_KEY=right"}});
  const std::string url = "http://127.0.0.1:" + std::to_string(node.port());
  const TemporaryFolder elsewhere;
  const auto there = [&](std::vector<std::string> words, const std::string& key) {
    words.insert(words.end(), {"--url", url});
    return run_werk(words, {"WERK_HOME=" + elsewhere.path().string(), "WERK_API_KEY=" + key});
  };
  EXPECT_EQ(there({"load", "a"}, "right").status, 0);
  EXPECT_NE(there({"ps"}, "right").out.find("ready"), std::string::npos);
  EXPECT_NE(there({"ps", "--json"}, "right").out.find(R"("pools":)"), std::string::npos);
  for (const std::vector<std::string>& words : {std::vector<std::string>{"ps"},
                                                {"load", "a"},
                                                {"unload", "a"},
                                                {"pin", "a"},
                                                {"logs"},
                                                {"stop"}}) {
    const CommandRun refused = there(words, "wrong");
    EXPECT_EQ(refused.status, 1) << words.front();
    EXPECT_NE(refused.err.find("WERK_API_KEY"), std::string::npos) << refused.err;
  }
  EXPECT_EQ(there({"unload", "a"}, "right").out, "a is unloaded\n");
  EXPECT_EQ(there({"unload", "a"}, "right").out, "a was not loaded\n");
  EXPECT_EQ(there({"stop"}, "right").out, "the node has ended\n");
  EXPECT_EQ(node.process().wait_exit(), 0);
}

}  // namespace
}  // namespace werk::test
