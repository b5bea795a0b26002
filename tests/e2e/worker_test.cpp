// Resident workers behind the real node: one generation at a time on one model, several models side
// by side, the bounded residency of each worker engine, cancels that go through or not, and deaths.
#include <gtest/gtest.h>
#include <signal.h>

#include "tests/e2e/chat_answer.hpp"
#include "tests/e2e/worker_node.hpp"

namespace werk::test {
namespace {

namespace json = boost::json;

const json::object kHeld = {{"hold", true}, {"content", "one two three"}};

TEST(Workers, AnswerBothDialectsStreamedAndWholeAndCountWhatTheyUse) {
  WorkerNode node({.worker = {{"reply", {{"content", "one two three"}}}}});
  const ChatAnswer whole = read_whole(node.chat("a").whole_body());
  EXPECT_EQ(whole.content, "one two three");
  EXPECT_EQ(whole.finish_reason, "stop");
  const ChatAnswer stream = read_stream(
      node.chat("a", R"("stream":true,"stream_options":{"include_usage":true})").whole_body());
  EXPECT_EQ(stream.content, "one two three");
  EXPECT_TRUE(stream.done);
  ASSERT_EQ(stream.usages.size(), 1u);
  const std::string body =
      R"({"model":"a","max_tokens":9,"messages":[{"role":"user","content":"count these words"}]})";
  HttpCall message(node.node().port(), "POST", "/v1/messages", body);
  const json::value answer = json::parse(message.whole_body());
  EXPECT_EQ(answer.at("content").at(0).at("text"), "one two three") << message.whole_body();
  HttpCall count(node.node().port(), "POST", "/v1/messages/count_tokens", body);
  EXPECT_EQ(json::parse(count.whole_body()).at("input_tokens"),
            answer.at("usage").at("input_tokens"));
  EXPECT_EQ(node.workers().count("spawned"), 1u);
}

TEST(Workers, StopAtStopStrings) {
  WorkerNode node({.worker = {{"reply", {{"content", "one END two"}}}}});
  const ChatAnswer stopped = read_whole(node.chat("a", R"("stop":["END"])").whole_body());
  EXPECT_EQ(stopped.content, "one ");
  EXPECT_EQ(stopped.finish_reason, "stop");
}

TEST(Workers, GiveToolCallsInBothDialects) {
  WorkerNode node(
      {.worker = {{"reply",
                   {{"content",
                     "<tool_call>{\"name\":\"ls\",\"arguments\":{\"p\":\"x\"}}</tool_call>"}}}}});
  HttpCall called = node.chat(
      "a",
      R"("tools":[{"type":"function","function":{"name":"ls","parameters":{"type":"object"}}}])");
  const ChatAnswer answer = read_whole(called.whole_body());
  EXPECT_EQ(answer.finish_reason, "tool_calls");
  ASSERT_EQ(answer.calls.size(), 1u);
  EXPECT_EQ(answer.calls.at(0).name, "ls");
  HttpCall message(node.node().port(), "POST", "/v1/messages",
                   R"({"model":"a","max_tokens":99,"messages":[{"role":"user","content":"x"}],)"
                   R"("tools":[{"name":"ls","input_schema":{"type":"object"}}]})");
  const json::value block = json::parse(message.whole_body()).at("content").at(0);
  EXPECT_EQ(block.at("type"), "tool_use");
  EXPECT_EQ(json::serialize(block.at("input")), R"({"p":"x"})");
}

TEST(Workers, RunOneCallAtATimeOnOneModelInOrder) {
  WorkerNode node({.worker = {{"reply", kHeld}}});
  HttpCall first = node.chat("a");
  const EngineEvent running = node.generating();
  HttpCall second = node.chat("a");
  node.node().await_waiting(1);
  HttpCall third = node.chat("a");
  node.node().await_waiting(2);
  second.close();
  node.node().await_waiting(1);
  EXPECT_EQ(node.workers().count("generating"), 1u);
  node.finish(running);
  EXPECT_EQ(first.status(), 200);
  node.finish(node.generating());
  EXPECT_EQ(third.status(), 200);
  EXPECT_EQ(node.workers().count("generating"), 2u) << "the one that left never ran";
}

TEST(Workers, AClientThatLeavesFreesItsWorkerBetweenTwoTokens) {
  WorkerNode node({.worker = {{"replies", {{{"content", "a b c"}, {"hold_after", 1}}}},
                              {"reply", {{"content", "next"}}}}});
  HttpCall left = node.chat("a", R"("stream":true)");
  const EngineEvent running = node.generating();
  left.body_until("a");
  left.close();
  EXPECT_EQ(node.workers().expect("cancelled").request(), running.request());
  EXPECT_EQ(read_whole(node.chat("a").whole_body()).content, "next");
  EXPECT_EQ(node.workers().count("spawned"), 1u);
}

TEST(Workers, AWorkerThatDoesNotConfirmACancelIsEndedAndTheNextCallGetsANewOne) {
  WorkerNode node({.worker = {{"replies", {{{"hold", true}, {"deaf", true}}}},
                              {"reply", {{"content", "next"}}}},
                   .arguments = {"--worker-cancel-limit", "50ms"}});
  HttpCall left = node.chat("a");
  const EngineEvent running = node.generating();
  left.close();
  node.workers().expect_from(running.engine, "gone");
  node.workers().set_settings({{"name", "onnx-genai"}, {"reply", {{"content", "next"}}}});
  EXPECT_EQ(read_whole(node.chat("a").whole_body()).content, "next");
  EXPECT_EQ(node.workers().count("spawned"), 2u);
}

TEST(Workers, AWorkerKilledInMidStreamIsToldAndReplaced) {
  WorkerNode node({.worker = {{"replies", {{{"content", "a b c"}, {"hold_after", 1}}}},
                              {"reply", {{"content", "next"}}}}});
  HttpCall cut = node.chat("a", R"("stream":true)");
  const EngineEvent running = node.generating();
  cut.body_until("a");
  node.workers().send(running.engine, {{"do", "kill_self"}});
  const ChatAnswer told = read_stream(cut.whole_body());
  EXPECT_EQ(told.content.substr(0, 1), "a");
  EXPECT_NE(error_text(told, "message").find("killed by SIGKILL"), std::string::npos)
      << cut.whole_body();
  EXPECT_EQ(cut.end(), BodyEnd::cut);
  node.workers().set_settings({{"name", "onnx-genai"}, {"reply", {{"content", "next"}}}});
  EXPECT_EQ(read_whole(node.chat("a").whole_body()).content, "next");
}

TEST(Workers, NoneOutlivesItsNode) {
  WorkerNode node({.worker = {{"reply", kHeld}}});
  HttpCall call = node.chat("a");
  node.generating();
  node.node().process().signal(SIGKILL);
  node.node().process().wait_exit();
  EXPECT_TRUE(node.workers().none_living_within(std::chrono::seconds(30)));
}

TEST(Workers, AFailedLoadIsToldWithTheWorkersOwnReason) {
  WorkerNode node(
      {.worker = {{"load_failed", {{"code", "model_unusable"}, {"message", "no such layer"}}}}});
  HttpCall call = node.chat("a");
  EXPECT_EQ(call.status(), 400);
  EXPECT_NE(call.whole_body().find("no such layer"), std::string::npos) << call.whole_body();
}

// ---- residency

class WorkerResidency : public ::testing::TestWithParam<WorkerEngine> {
 protected:
  static std::string variable() { return GetParam().variables + "_MODEL_CACHE_SIZE"; }
  static std::string size_is(std::size_t models) {
    return variable() + "=" + std::to_string(models);
  }
};
INSTANTIATE_TEST_SUITE_P(Each, WorkerResidency,
                         ::testing::Values(WorkerEngine{"onnx-genai", "WERK_ONNX_GENAI"},
                                           WorkerEngine{"transformers", "WERK_TRANSFORMERS"}),
                         [](const auto& each) {
                           return std::string(each.param.name == "onnx-genai" ? "OnnxGenAi"
                                                                              : "Transformers");
                         });

TEST_P(WorkerResidency, OfOneRefusesAnotherModelWhileTheFirstGenerates) {
  WorkerNode node({.stands_for = GetParam(), .models = {"a", "b"}, .worker = {{"reply", kHeld}}});
  HttpCall first = node.chat("a");
  const EngineEvent running = node.generating();
  HttpCall other = node.chat("b");
  EXPECT_EQ(other.status(), 503);
  EXPECT_NE(other.whole_body().find(variable()), std::string::npos) << other.whole_body();
  EXPECT_FALSE(other.header("Retry-After").empty());
  node.finish(running);
  EXPECT_EQ(first.status(), 200);
  HttpCall again = node.chat("b");
  node.finish(node.generating());
  EXPECT_EQ(again.status(), 200) << again.whole_body();
  node.workers().expect_from(running.engine, "gone");
}

TEST_P(WorkerResidency, OfOneWaitsForAPlaceWhereThatIsConfigured) {
  WorkerNode node({.stands_for = GetParam(),
                   .models = {"a", "b"},
                   .worker = {{"reply", kHeld}},
                   .arguments = {"--capacity-wait", "60s"}});
  HttpCall first = node.chat("a");
  const EngineEvent running = node.generating();
  HttpCall other = node.chat("b");
  node.node().await_waiting(1);
  node.finish(running);
  EXPECT_EQ(first.status(), 200);
  node.finish(node.generating());
  EXPECT_EQ(other.status(), 200) << other.whole_body();
}

TEST_P(WorkerResidency, OfTwoOverlapsTwoModelsAndEvictsTheLeastRecentlyUsed) {
  WorkerNode node({.stands_for = GetParam(),
                   .models = {"a", "b", "c"},
                   .worker = {{"reply", kHeld}},
                   .environment = {size_is(2)}});
  HttpCall a = node.chat("a");
  const EngineEvent on_a = node.generating();
  HttpCall b = node.chat("b");
  const EngineEvent on_b = node.generating();
  EXPECT_NE(on_a.engine, on_b.engine) << "both run at once";
  node.finish(on_a);
  EXPECT_EQ(a.status(), 200);
  node.finish(on_b);
  EXPECT_EQ(b.status(), 200);
  HttpCall again = node.chat("a");
  node.finish(node.generating());
  EXPECT_EQ(again.status(), 200);
  HttpCall c = node.chat("c");
  const EngineEvent on_c = node.generating();
  node.workers().expect_from(on_b.engine, "gone");
  node.finish(on_c);
  EXPECT_EQ(c.status(), 200);
  EXPECT_EQ(node.node().observability().at("runtimes").as_array().size(), 2u);
}

TEST_P(WorkerResidency, AWaitingCallAndAStartEachKeepTheirWorker) {
  WorkerNode node({.stands_for = GetParam(),
                   .models = {"a", "b"},
                   .worker = {{"load", "hold"}, {"reply", kHeld}}});
  HttpCall first = node.chat("a");
  const EngineEvent loading = node.workers().expect("loading");
  EXPECT_EQ(node.chat("b").status(), 503) << "a start keeps its place";
  node.workers().ready(loading.engine);
  const EngineEvent running = node.generating();
  HttpCall second = node.chat("a");
  node.node().await_waiting(1);
  node.finish(running);
  EXPECT_EQ(first.status(), 200);
  const EngineEvent next = node.generating();
  EXPECT_EQ(node.chat("b").status(), 503) << "the call that waited runs now";
  node.finish(next);
  EXPECT_EQ(second.status(), 200);
}

TEST_P(WorkerResidency, OfNoneServesEveryModelInOrderWithOneWorker) {
  WorkerNode node({.stands_for = GetParam(),
                   .models = {"a", "b"},
                   .worker = {{"reply", kHeld}},
                   .environment = {size_is(0)}});
  HttpCall a = node.chat("a");
  const EngineEvent on_a = node.generating();
  HttpCall b = node.chat("b");
  node.node().await_waiting(1);
  node.finish(on_a);
  EXPECT_EQ(a.status(), 200);
  const EngineEvent on_b = node.generating();
  EXPECT_EQ(on_b.engine, on_a.engine);
  EXPECT_EQ(node.workers().count("unloaded"), 1u);
  node.finish(on_b);
  EXPECT_EQ(b.status(), 200) << b.whole_body();
  node.node().await_no_runtimes();
  node.workers().expect("unloaded");
  node.workers().expect("unloaded");
  EXPECT_EQ(node.workers().count("spawned"), 1u);
  node.node().process().signal(SIGTERM);
  EXPECT_EQ(node.node().process().wait_exit(), 0);
}

}  // namespace
}  // namespace werk::test
