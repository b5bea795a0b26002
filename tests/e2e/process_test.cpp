// Who dies with whom: shutdown with calls in every stage, signals, engines and nodes that are
// killed, what a child inherits, and nodes that stand in each other's way.
#include <gtest/gtest.h>

#include <chrono>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <set>

#include "tests/e2e/chat_answer.hpp"
#include "tests/e2e/test_node.hpp"

namespace werk::test {
namespace {

namespace fs = std::filesystem;
namespace json = boost::json;

constexpr std::string_view kAllTokens = "tok0 tok1 tok2 tok3 tok4 tok5 tok6 tok7 ";

json::object gated() { return {{"reply", {{"gated", true}}}}; }

void expect_draining(HttpCall& call) {
  EXPECT_EQ(call.status(), 503) << call.whole_body();
  EXPECT_EQ(error_text(read_whole(call.whole_body()), "code"), "draining");
  EXPECT_FALSE(call.header("Retry-After").empty());
}

void expect_whole(HttpCall& call) {
  const ChatAnswer answer = read_stream(call.whole_body());
  EXPECT_EQ(answer.content, kAllTokens);
  EXPECT_TRUE(answer.done);
  EXPECT_TRUE(answer.error.empty());
  EXPECT_EQ(call.end(), BodyEnd::proper);
}

// ---- the end of a node that is asked to

TEST(Shutdown, EachCallEndsByItsStageAndNoProcessAppearsAfterwards) {
  TestNode node(
      {.models = {{"ready"}, {"starting"}, {"queued"}},
       .engine = {{"models",
                   {{"models/starting/", {{"start", "hold"}}}, {"models/ready/", gated()}}}},
       .arguments = {"--max-resident", "2"}});
  HttpCall streaming = node.chat("ready", R"("stream":true)");
  const EngineEvent generation = node.generation();
  node.engines().step(generation.engine, generation.request());
  streaming.body_until("tok0");
  HttpCall starting = node.chat("starting");
  node.engines().expect(
      "spawned", [&](const EngineEvent& event) { return event.engine != generation.engine; });
  HttpCall queued = node.chat("queued");
  node.await_waiting(2);
  HttpCall in_line = node.chat("ready");
  node.await_waiting(3);

  node.process().signal(SIGTERM);
  expect_draining(starting);
  expect_draining(queued);
  expect_draining(in_line);
  HttpCall late = node.chat("ready");
  expect_draining(late);
  node.engines().finish(generation.engine, generation.request());
  expect_whole(streaming);
  EXPECT_EQ(node.process().wait_exit(), 0) << node.process().log();
  EXPECT_TRUE(node.engines().none_living_within(std::chrono::seconds(2)));
  EXPECT_EQ(node.engines().count("spawned"), 2u);
}

TEST(Shutdown, ThreeRunningStreamsEndWholeAndTheExitStatusIsZero) {
  TestNode node({.engine = gated(), .arguments = {"--parallel", "3"}});
  std::vector<HttpCall> streams;
  std::vector<EngineEvent> generations;
  for (int i = 0; i < 3; ++i) {
    streams.push_back(node.chat("a", R"("stream":true)"));
    generations.push_back(node.generation());
    node.engines().step(generations.back().engine, generations.back().request());
    streams.back().body_until("tok0");
  }
  node.process().signal(SIGTERM);
  node.await_observability(
      [](const json::object& page) { return page.at("node").at("draining").as_bool(); });
  EXPECT_EQ(node.get("/health").status(), 200);
  EXPECT_EQ(node.get("/readyz").status(), 503);
  for (const EngineEvent& generation : generations) {
    node.engines().finish(generation.engine, generation.request());
  }
  for (HttpCall& stream : streams) expect_whole(stream);
  EXPECT_EQ(node.process().wait_exit(), 0);
  EXPECT_TRUE(node.engines().none_living_within(std::chrono::seconds(2)));
}

TEST(Shutdown, ASecondSignalEndsRunningStreamsNow) {
  TestNode node({.engine = gated(), .arguments = {"--drain-timeout", "1h"}});
  HttpCall stream = node.chat("a", R"("stream":true)");
  const EngineEvent generation = node.generation();
  node.engines().step(generation.engine, generation.request());
  stream.body_until("tok0");
  node.process().signal(SIGINT);
  node.process().wait_for_line("shutting down");
  node.process().signal(SIGINT);
  EXPECT_EQ(node.process().wait_exit(), 0);
  stream.whole_body();
  EXPECT_EQ(stream.end(), BodyEnd::cut) << "an answer that was cut must not look whole";
  EXPECT_EQ(stream.whole_body().find("[DONE]"), std::string::npos);
  EXPECT_TRUE(node.engines().none_living_within(std::chrono::seconds(2)));
}

TEST(Shutdown, StreamsThatOutlastTheDrainLimitAreCut) {
  TestNode node({.engine = gated(), .arguments = {"--drain-timeout", "50ms"}});
  HttpCall stream = node.chat("a", R"("stream":true)");
  node.generation();
  node.process().signal(SIGTERM);
  EXPECT_EQ(node.process().wait_exit(), 0);
  EXPECT_NE(node.process().log().find("cut off"), std::string::npos);
  EXPECT_TRUE(node.engines().none_living_within(std::chrono::seconds(2)));
}

TEST(Shutdown, ASignalDuringTheDefaultModelsStartEndsTheStart) {
  TestNode node({.engine = {{"start", "hold"}}, .arguments = {"--model", "a"}});
  node.engines().expect("spawned");
  node.process().signal(SIGTERM);
  EXPECT_EQ(node.process().wait_exit(), 0);
  EXPECT_TRUE(node.engines().none_living_within(std::chrono::seconds(2)));
}

// ---- engines that are killed

TEST(Killed, AnEngineInMidStreamLeavesItsClientTheTokensAndAnErrorAndTheNextCallANewEngine) {
  TestNode node({.engine = {{"replies", {{{"gated", true}}}}}});
  HttpCall stream = node.chat("a", R"("stream":true)");
  const EngineEvent generation = node.generation();
  node.engines().step(generation.engine, generation.request(), 2);
  stream.body_until("tok1");
  node.engines().send(generation.engine, {{"do", "kill_self"}});
  const ChatAnswer answer = read_stream(stream.whole_body());
  EXPECT_EQ(answer.content, "tok0 tok1 ");
  EXPECT_EQ(error_text(answer, "code"), "engine_failed");
  EXPECT_NE(error_text(answer, "message").find("SIGKILL"), std::string::npos)
      << error_text(answer, "message");
  EXPECT_FALSE(answer.done);
  EXPECT_EQ(answer.finish_reason, "");
  EXPECT_EQ(answer.events_after_end, 0u);
  EXPECT_EQ(stream.end(), BodyEnd::cut);
  node.engines().set_settings({});
  HttpCall next = node.chat("a");
  EXPECT_EQ(next.status(), 200) << next.whole_body();
  EXPECT_EQ(node.spawned(), 2u);
}

TEST(Killed, CallsThatStoodInTheLineOfAnEngineAreServedByTheNextOne) {
  TestNode node({.engine = {{"reply", {{"hold", true}}}}});
  HttpCall running = node.chat("a");
  const EngineEvent generation = node.generation();
  HttpCall first = node.chat("a");
  HttpCall second = node.chat("a");
  node.await_waiting(2);
  node.engines().set_settings({});
  node.engines().send(generation.engine, {{"do", "kill_self"}});
  EXPECT_EQ(running.status(), 502) << running.whole_body();
  EXPECT_EQ(first.status(), 200) << first.whole_body();
  EXPECT_EQ(second.status(), 200) << second.whole_body();
  EXPECT_EQ(node.spawned(), 2u);
}

TEST(Killed, AnIdleEngineIsReplacedByTheNextCall) {
  TestNode node({});
  EXPECT_EQ(node.chat("a").status(), 200);
  node.kill_engine(0);
  EXPECT_EQ(node.chat("a").status(), 200);
  EXPECT_EQ(node.spawned(), 2u);
}

// ---- nodes that are killed

TEST(Killed, ANodeLeavesNoEngineAndTheNextOneTakesItsHomeAndPortAtOnce) {
  TestNode node(
      {.models = {{"a"}, {"b"}}, .engine = {{"ignore_term", true}, {"reply", {{"gated", true}}}}});
  const std::uint16_t port = node.port();
  HttpCall stream = node.chat("a", R"("stream":true)");
  const EngineEvent generation = node.generation();
  node.engines().step(generation.engine, generation.request());
  stream.body_until("tok0");
  HttpCall other = node.chat("b");
  node.generation();
  EXPECT_EQ(node.engines().living().size(), 3u);
  node.process().signal(SIGKILL);
  EXPECT_EQ(node.process().wait_exit(), 128 + SIGKILL);
  EXPECT_TRUE(node.engines().none_living_within(std::chrono::seconds(2)));
  stream.whole_body();
  EXPECT_EQ(stream.end(), BodyEnd::cut);

  node.engines().set_settings({});
  node.start_again({"--port", std::to_string(port)});
  EXPECT_EQ(node.port(), port);
  EXPECT_EQ(node.chat("a").status(), 200);
}

// ---- what a child holds

std::string link_of(const fs::path& path) {
  std::error_code gone;
  return fs::read_symlink(path, gone).string();
}

// What a process has open, by number.
std::map<int, std::string> open_files(pid_t pid) {
  std::map<int, std::string> files;
  for (const auto& entry : fs::directory_iterator("/proc/" + std::to_string(pid) + "/fd")) {
    const std::string target = link_of(entry.path());
    if (!target.empty()) files[std::stoi(entry.path().filename())] = target;
  }
  return files;
}

TEST(Child, HoldsNothingOfTheNodesButItsThreeStandardFiles) {
  TestNode node({.models = {{"a"}, {"b"}}, .engine = {{"reply", {{"hold", true}}}}});
  HttpCall first = node.chat("a");
  node.generation();
  HttpCall second = node.chat("b");
  const EngineEvent generation = node.generation();
  const EngineEvent spawned = node.engines().expect_from(generation.engine, "spawned");
  std::set<std::string> of_node;
  for (const auto& [number, target] : open_files(node.process().pid())) {
    if (target.starts_with("socket:") || target.starts_with("pipe:")) of_node.insert(target);
  }
  const auto child = open_files(static_cast<pid_t>(spawned.number("pid")));
  ASSERT_TRUE(child.contains(0));
  EXPECT_EQ(child.at(0), "/dev/null");
  for (const auto& [number, target] : child) {
    const bool own_output = number == 1 || number == 2;
    EXPECT_TRUE(own_output || !of_node.contains(target)) << number << " is " << target;
    EXPECT_EQ(target.find(node.home().string() + "/run"), std::string::npos) << target;
  }
}

// ---- nodes that stand in each other's way

std::string refusal_of(NodeProcess& process) {
  EXPECT_EQ(process.wait_exit(), 1);
  return process.log();
}

TEST(Conflict, ASecondNodeOnTheSameHomeIsToldWhoServesItAndWhere) {
  TestNode node({});
  const std::string address = "127.0.0.1:" + std::to_string(node.port());
  NodeProcess second(node.process_settings({}));
  const std::string log = refusal_of(second);
  EXPECT_NE(log.find(std::to_string(node.process().pid())), std::string::npos) << log;
  EXPECT_NE(log.find(address), std::string::npos) << log;
  EXPECT_EQ(node.get("/health").status(), 200) << "the first goes on";
}

TEST(Conflict, APortInUseIsToldWithItsHolderAndTheOptionThatChoosesAnother) {
  TestNode node({});
  const TemporaryFolder other_home;
  NodeProcess::Settings settings = node.process_settings({"--port", std::to_string(node.port())});
  settings.home = other_home.path();
  NodeProcess second(settings);
  const std::string log = refusal_of(second);
  EXPECT_NE(log.find("--port"), std::string::npos) << log;
  EXPECT_NE(log.find(std::to_string(node.process().pid())), std::string::npos) << log;
}

TEST(Conflict, AHomeThatCannotBeWrittenIsNamedWithTheWayOut) {
  TestNode node({});
  const TemporaryFolder folder;
  const fs::path file = folder / "a file, no folder";
  std::ofstream(file) << "x";
  NodeProcess::Settings settings = node.process_settings({});
  settings.home = file / "home";
  NodeProcess second(settings);
  const std::string log = refusal_of(second);
  EXPECT_NE(log.find(file.string()), std::string::npos) << log;
  EXPECT_NE(log.find("WERK_HOME"), std::string::npos) << log;
}

}  // namespace
}  // namespace werk::test
