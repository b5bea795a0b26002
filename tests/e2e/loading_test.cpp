// Cold models: one process per runtime key whoever comes and goes, loads that don't wait for one
// another, and starts that fail. Engines are held at their start until the test lets them go.
#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <random>

#include "tests/e2e/chat_answer.hpp"
#include "tests/e2e/test_node.hpp"

namespace werk::test {
namespace {

namespace fs = std::filesystem;
namespace json = boost::json;

using Clock = std::chrono::steady_clock;

constexpr std::size_t kCallers = 32;

int status_of_chat(TestNode& node, std::string_view model) {
  HttpCall call = node.chat(model, R"("max_tokens":1)");
  call.whole_body();
  return call.status();
}

// Two names over equal files: they share one runtime.
std::vector<TestModel> one_model_with_two_names() {
  return {{"first", {.name = "same"}}, {"second", {.name = "same"}}};
}

std::string name_for(std::size_t caller) { return caller % 2 == 0 ? "first" : "second"; }

std::size_t runtimes_in(const json::object& page) { return page.at("runtimes").as_array().size(); }

void await_active(TestNode& node, std::uint64_t calls) {
  node.await_observability(
      [calls](const json::object& page) { return number_in(page, "calls", "active") >= calls; });
}

TEST(Loading, ThirtyTwoCallersOfOneColdModelShareOneProcessInEachOfFiftyRounds) {
  TestNode node({.models = one_model_with_two_names(),
                 .engine = {{"start", "hold"}},
                 .arguments = {"--parallel", "4"}});
  const unsigned seed = std::random_device()();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937 random(seed);
  for (int round = 1; round <= 50; ++round) {
    // The engine becomes ready when a random number of the callers has arrived, or none.
    const std::uint64_t arrived = random() % (kCallers + 1);
    std::jthread opener([&node, arrived] {
      try {
        const int engine = node.engines().expect("spawned").engine;
        await_active(node, arrived);
        node.engines().ready(engine);
      } catch (const std::exception& error) {
        ADD_FAILURE() << error.what();
      }
    });
    const std::vector<int> statuses = run_callers(
        kCallers, [&node](std::size_t caller) { return status_of_chat(node, name_for(caller)); });
    opener.join();
    ASSERT_EQ(statuses, std::vector<int>(kCallers, 200)) << "round " << round;
    ASSERT_EQ(node.spawned(), static_cast<std::size_t>(round));
    node.kill_engine(round - 1);
  }
}

TEST(Loading, ADefaultModelPreparedAtStartIsTheSameProcessThatItsFirstCallersGet) {
  TestNode node({.models = one_model_with_two_names(),
                 .engine = {{"start", "hold"}},
                 .arguments = {"--model", "first", "--parallel", "4"}});
  const int engine = node.engines().expect("spawned").engine;
  std::jthread opener([&] {
    await_active(node, kCallers);
    EXPECT_EQ(node.get("/readyz").status(), 503);
    node.engines().ready(engine);
  });
  const std::vector<int> statuses = run_callers(
      kCallers, [&node](std::size_t caller) { return status_of_chat(node, name_for(caller)); });
  opener.join();
  EXPECT_EQ(statuses, std::vector<int>(kCallers, 200));
  EXPECT_EQ(node.spawned(), 1u);
  EXPECT_EQ(node.get("/readyz").status(), 200);
}

TEST(Loading, ThreeColdModelsLoadSideBySide) {
  TestNode node({.models = {{"a"}, {"b"}, {"c"}}, .engine = {{"start", "hold"}}});
  std::vector<HttpCall> calls;
  for (const char* model : {"a", "b", "c"}) calls.push_back(node.chat(model));
  // None of them is ready before all have been spawned.
  std::vector<int> engines;
  for (int i = 0; i < 3; ++i) engines.push_back(node.engines().expect("spawned").engine);
  for (const int engine : engines) node.engines().ready(engine);
  for (HttpCall& call : calls) EXPECT_EQ(call.status(), 200) << call.whole_body();
}

TEST(Loading, WhileOneModelLoadsAnotherStreamsAndOnlyTheFirstOnesCallersGetItsError) {
  TestNode node({.models = {{"slow"}, {"quick"}},
                 .engine = {{"models",
                             {{"models/slow/", {{"start", "hold"}}},
                              {"models/quick/", {{"reply", {{"gated", true}}}}}}}}});
  HttpCall quick = node.chat("quick", R"("stream":true)");
  const EngineEvent generation = node.generation();
  HttpCall first = node.chat("slow");
  HttpCall second = node.chat("slow", R"("stream":true)");
  node.await_waiting(2);
  const EngineEvent spawned = node.engines().expect(
      "spawned", [&](const EngineEvent& event) { return event.engine != generation.engine; });
  node.engines().step(generation.engine, generation.request(), 2);
  quick.body_until("tok1");
  EXPECT_EQ(node.get("/health").status(), 200);
  EXPECT_EQ(node.get("/readyz").status(), 200);
  EXPECT_EQ(node.get("/v1/models").status(), 200);
  EXPECT_EQ(runtime_of(node.observability(), "slow").at("state").as_string(), "starting");
  EXPECT_EQ(runtime_of(node.observability(), "quick").at("state").as_string(), "ready");
  node.engines().exit(spawned.engine, 3, "0.00.100.000 E srv: the disk is on fire\n");
  for (HttpCall* call : {&first, &second}) {
    EXPECT_EQ(call->status(), 503) << call->whole_body();
    const ChatAnswer answer = read_whole(call->whole_body());
    EXPECT_EQ(error_text(answer, "code"), "start_failed");
    EXPECT_NE(error_text(answer, "message").find("the disk is on fire"), std::string::npos);
  }
  node.engines().finish(generation.engine, generation.request());
  const ChatAnswer streamed = read_stream(quick.whole_body());
  EXPECT_TRUE(streamed.done);
  EXPECT_TRUE(streamed.error.empty());
}

TEST(Loading, ALoadWhoseOnlyCallersLeftIsFinishedSoTheNextTryIsWarm) {
  TestNode node({.engine = {{"start", "hold"}}});
  int engine = -1;
  for (std::uint64_t attempt = 1; attempt <= 2; ++attempt) {
    HttpCall impatient = node.chat("a");
    if (attempt == 1) engine = node.engines().expect("spawned").engine;
    node.await_waiting(1);
    impatient.close();
    node.await_observability([attempt](const json::object& page) {
      return number_in(page, "calls", "cancelled") == attempt;
    });
  }
  EXPECT_EQ(runtime_of(node.observability(), "a").at("state").as_string(), "starting");
  node.engines().ready(engine);
  node.await_state("a", "ready");
  EXPECT_EQ(status_of_chat(node, "a"), 200);
  EXPECT_EQ(node.spawned(), 1u);
  EXPECT_EQ(node.generations(), 1u) << "the calls that left never reach the engine";
}

TEST(Loading, ACallerThatLeavesALoadHurtsNoOther) {
  TestNode node({.engine = {{"start", "hold"}}});
  HttpCall leaves = node.chat("a");
  HttpCall stays = node.chat("a");
  const int engine = node.engines().expect("spawned").engine;
  node.await_waiting(2);
  leaves.reset();
  node.await_waiting(1);
  node.engines().ready(engine);
  EXPECT_EQ(stays.status(), 200) << stays.whole_body();
  EXPECT_EQ(node.generations(), 1u);
}

// ---- starts that fail

std::string message_of(HttpCall& call) {
  return error_text(read_whole(call.whole_body()), "message");
}

TEST(FailedStart, AnEngineThatExitsDuringItsStartIsToldWithinASecondWithStatusAndReason) {
  TestNode node({.engine = {{"start", "hold"}}, .arguments = {"--start-timeout", "900s"}});
  HttpCall call = node.chat("a");
  const int engine = node.engines().expect("spawned").engine;
  node.await_waiting(1);
  const auto before = Clock::now();
  node.engines().exit(engine, 7, "0.00.300.000 E srv: no such device\n");
  EXPECT_EQ(call.status(), 503);
  const auto took = Clock::now() - before;
  const std::string message = message_of(call);
  EXPECT_LT(took, std::chrono::seconds(1));
  EXPECT_NE(message.find("exit status 7"), std::string::npos) << message;
  EXPECT_NE(message.find("no such device"), std::string::npos) << message;
  EXPECT_EQ(message.find(node.home().string()), std::string::npos) << message;
  EXPECT_FALSE(call.header("Retry-After").empty());
  EXPECT_EQ(runtimes_in(node.observability()), 0u);
}

TEST(FailedStart, AStartWithoutProgressIsGivenUpAndNamesItsLimit) {
  TestNode node({.engine = {{"start", "hold"}}, .arguments = {"--start-timeout", "300ms"}});
  HttpCall call = node.chat("a");
  EXPECT_EQ(call.status(), 503);
  EXPECT_NE(message_of(call).find("--start-timeout"), std::string::npos) << call.whole_body();
  EXPECT_EQ(node.engines().living(), std::vector<pid_t>{node.process().pid()})
      << "the engine is gone before its callers are told";
}

TEST(FailedStart, AnEngineThatServesAnotherModelIsNotUsed) {
  TestNode node({.engine = {{"alias", "somebody-else"}}});
  HttpCall call = node.chat("a");
  EXPECT_EQ(call.status(), 503);
  EXPECT_NE(message_of(call).find("serves another model"), std::string::npos) << call.whole_body();
  node.engines().expect_from(0, "gone");  // killed: it can be asked nothing any more
  EXPECT_EQ(node.generations(), 0u);
  EXPECT_EQ(node.engines().living(), std::vector<pid_t>{node.process().pid()});
}

TEST(FailedStart, AHealthyEngineWhoseModelListIsNonsenseIsNotUsed) {
  TestNode node(
      {.engine = {{"statuses", {{"/v1/models", {{"status", 200}, {"body", "<html>"}}}}}}});
  HttpCall call = node.chat("a");
  EXPECT_EQ(call.status(), 503) << call.whole_body();
  EXPECT_FALSE(call.header("Retry-After").empty());
  node.engines().expect_from(0, "gone");  // killed: it can be asked nothing any more
  EXPECT_EQ(node.generations(), 0u);
  EXPECT_EQ(node.engines().living(), std::vector<pid_t>{node.process().pid()});
}

TEST(FailedStart, AModelThatTheEngineRejectsIsUnusableAndNotWorthARetry) {
  TestNode node(
      {.engine = {{"start", "exit"},
                  {"stderr", "0.00.006.434 E srv    load_model: failed to load model\n"}}});
  HttpCall call = node.chat("a");
  EXPECT_EQ(call.status(), 400);
  EXPECT_EQ(error_text(read_whole(call.whole_body()), "code"), "model_unusable");
  EXPECT_EQ(call.header("Retry-After"), "");
}

class BrokenFile : public ::testing::Test {
 protected:
  fs::path weights() {
    for (const auto& entry : fs::recursive_directory_iterator(node.home() / "models" / "a")) {
      if (entry.path().extension() == ".gguf") return entry.path();
    }
    throw std::runtime_error("no weights in the store");
  }
  void expect_refused() {
    HttpCall call = node.chat("a");
    EXPECT_EQ(call.status(), 400) << call.whole_body();
    EXPECT_EQ(error_text(read_whole(call.whole_body()), "code"), "model_unusable");
    EXPECT_EQ(message_of(call).find(node.home().string()), std::string::npos) << message_of(call);
    EXPECT_EQ(node.spawned(), 0u);
    EXPECT_EQ(status_of_chat(node, "sound"), 200) << "the node is alive";
  }
  TestNode node{{.models = {{"a"}, {"sound"}}}};
};

TEST_F(BrokenFile, AMissingOneIsRefusedWithoutAProcess) {
  fs::remove(weights());
  expect_refused();
}

TEST_F(BrokenFile, AnEmptyOneIsRefusedWithoutAProcess) {
  fs::resize_file(weights(), 0);
  expect_refused();
}

TEST_F(BrokenFile, AForeignOneIsRefusedWithoutAProcess) {
  std::ofstream(weights(), std::ios::trunc) << "%PDF-1.7 this is no model";
  expect_refused();
}

TEST(FailedStart, AFailedDefaultLeavesTheNodeUpAndReadyzSaysWhy) {
  TestNode node({.models = {{"bad"}, {"good"}},
                 .engine = {{"models", {{"models/bad/", {{"start", "hold"}}}}}},
                 .arguments = {"--model", "bad"}});
  const int engine = node.engines().expect("spawned").engine;
  EXPECT_NE(node.get("/readyz").whole_body().find("is being loaded"), std::string::npos);
  node.engines().exit(engine, 1, "0.00.100.000 E srv: not today\n");
  node.await_no_runtimes();
  HttpCall ready = node.get("/readyz");
  EXPECT_EQ(ready.status(), 503);
  EXPECT_NE(ready.whole_body().find("not today"), std::string::npos) << ready.whole_body();
  EXPECT_EQ(node.get("/health").status(), 200);
  EXPECT_EQ(status_of_chat(node, "good"), 200);
}

}  // namespace
}  // namespace werk::test
