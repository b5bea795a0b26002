// A full pool: who is evicted, who waits, who is refused. One place (--max-resident 1), several
// models.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <latch>
#include <thread>

#include "tests/e2e/chat_answer.hpp"
#include "tests/e2e/test_node.hpp"

namespace werk::test {
namespace {

namespace json = boost::json;

using Clock = std::chrono::steady_clock;

std::vector<std::string> one_place(std::vector<std::string> more = {}) {
  more.insert(more.begin(), {"--max-resident", "1"});
  return more;
}

// Whether an answer came whole, with its end marker and the connection's framing complete.
int is_whole_stream(TestNode& node, std::string_view model) {
  HttpCall call = node.chat(model, R"("stream":true)");
  const ChatAnswer answer = read_stream(call.whole_body());
  const bool whole = call.status() == 200 && call.end() == BodyEnd::proper && answer.done &&
                     answer.error.empty() && answer.finish_reason == "stop";
  return whole ? 1 : 0;
}

// Each engine had ended before the next one was spawned.
void expect_never_two_residents(EngineControl& engines) {
  const std::vector<EngineEvent> spawned = engines.all("spawned");
  const std::vector<EngineEvent> ended = engines.all("exiting");
  ASSERT_GE(ended.size() + 1, spawned.size());
  for (std::size_t i = 1; i < spawned.size(); ++i) {
    EXPECT_EQ(ended[i - 1].engine, spawned[i - 1].engine);
    EXPECT_LT(ended[i - 1].number("at_us"), spawned[i].number("at_us"));
  }
}

TEST(Swap, CallersMixingTwoModelsAllGetWholeStreamsAndNeverTwoEnginesLive) {
  TestNode node({.models = {{"a"}, {"b"}}, .arguments = one_place({"--parallel", "4"})});
  const std::vector<int> whole = run_callers(16, [&node](std::size_t caller) {
    int count = 0;
    for (std::size_t turn = 0; turn < 3; ++turn) {
      count += is_whole_stream(node, (caller + turn) % 2 == 0 ? "a" : "b");
    }
    return count;
  });
  EXPECT_EQ(whole, std::vector<int>(16, 3)) << node.process().log();
  expect_never_two_residents(node.engines());
}

TEST(Swap, ACallForAnotherModelWaitsUntilTheRunningStreamIsWhole) {
  TestNode node({.models = {{"a"}, {"b"}},
                 .engine = {{"models", {{"models/a/", {{"reply", {{"gated", true}}}}}}}},
                 .arguments = one_place()});
  HttpCall running = node.chat("a", R"("stream":true)");
  const EngineEvent generation = node.generation();
  HttpCall waiting = node.chat("b");
  node.await_waiting(1);
  node.engines().step(generation.engine, generation.request(), 3);
  running.body_until("tok2");
  EXPECT_EQ(node.spawned(), 1u);
  node.engines().finish(generation.engine, generation.request());
  const ChatAnswer answer = read_stream(running.whole_body());
  EXPECT_TRUE(answer.done);
  EXPECT_EQ(answer.content, "tok0 tok1 tok2 tok3 tok4 tok5 tok6 tok7 ");
  EXPECT_EQ(waiting.status(), 200) << waiting.whole_body();
  expect_never_two_residents(node.engines());
}

TEST(Swap, WithoutAWaitTheOtherModelIsRefusedAtOnceAndTheStreamGoesOn) {
  TestNode node({.models = {{"a"}, {"b"}},
                 .engine = {{"reply", {{"gated", true}}}},
                 .arguments = one_place({"--capacity-wait", "0"})});
  HttpCall running = node.chat("a", R"("stream":true)");
  const EngineEvent generation = node.generation();
  HttpCall refused = node.chat("b");
  EXPECT_EQ(refused.status(), 503);
  EXPECT_EQ(error_text(read_whole(refused.whole_body()), "code"), "capacity");
  const int after = std::stoi("0" + refused.header("Retry-After"));
  EXPECT_GE(after, 1);
  EXPECT_LE(after, 60);
  node.engines().finish(generation.engine, generation.request());
  EXPECT_TRUE(read_stream(running.whole_body()).done);
  EXPECT_EQ(node.spawned(), 1u);
}

TEST(Swap, ABoundedWaitForAPlaceEndsWithACapacityError) {
  TestNode node({.models = {{"a"}, {"b"}},
                 .engine = {{"reply", {{"hold", true}}}},
                 .arguments = one_place({"--capacity-wait", "100ms"})});
  HttpCall running = node.chat("a");
  node.generation();
  HttpCall refused = node.chat("b");
  EXPECT_EQ(refused.status(), 503);
  EXPECT_EQ(error_text(read_whole(refused.whole_body()), "code"), "capacity");
}

TEST(Swap, TwoModelsThatArriveTogetherForOnePlaceAreBothServed) {
  TestNode node({.models = {{"a"}, {"b"}, {"c"}}, .arguments = one_place()});
  for (int round = 0; round < 5; ++round) {
    EXPECT_EQ(is_whole_stream(node, "a"), 1) << "round " << round;
    const std::vector<int> whole = run_callers(
        2, [&node](std::size_t caller) { return is_whole_stream(node, caller == 0 ? "b" : "c"); });
    EXPECT_EQ(whole, std::vector<int>(2, 1)) << "round " << round;
  }
  expect_never_two_residents(node.engines());
}

TEST(Swap, EveryLoadServesAtLeastTheCallThatWantedIt) {
  TestNode node({.models = {{"a"}, {"b"}}, .arguments = one_place()});
  const std::vector<int> whole = run_callers(2, [&node](std::size_t caller) {
    int count = 0;
    for (int turn = 0; turn < 4; ++turn) count += is_whole_stream(node, caller == 0 ? "a" : "b");
    return count;
  });
  EXPECT_EQ(whole, std::vector<int>(2, 4)) << "both advance";
  // The engine that is left may still have something to tell.
  node.engines().open_max(static_cast<int>(node.spawned()) - 1);
  std::vector<std::size_t> served(node.spawned(), 0);
  for (const EngineEvent& event : node.engines().all("request")) {
    const bool generation = event.all.at("generation").as_bool();
    if (generation) ++served.at(static_cast<std::size_t>(event.engine));
  }
  EXPECT_LE(served.size(), 8u);
  for (std::size_t engine = 0; engine < served.size(); ++engine) {
    EXPECT_GE(served[engine], 1u) << "engine " << engine << " came and went unused";
  }
}

TEST(Swap, AnEngineThatNeverAnswersGivesItsPlaceUpWhenItsClientLeaves) {
  TestNode node(
      {.models = {{"hung"}, {"other"}},
       .engine = {{"models",
                   {{"models/hung/", {{"reply", {{"hold", true}}}, {"busy_after_close", true}}}}}},
       .arguments = one_place()});
  HttpCall hung = node.chat("hung");
  const EngineEvent generation = node.generation();
  HttpCall other = node.chat("other");
  node.await_waiting(1);
  hung.close();
  EXPECT_EQ(other.status(), 200) << other.whole_body();
  node.engines().expect_from(generation.engine, "term");
  expect_never_two_residents(node.engines());
}

TEST(Swap, ALineOfCallsOnOneModelEndsBeforeAnotherTakesItsPlaceAndNobodyIsLost) {
  TestNode node({.models = {{"a"}, {"b"}},
                 .engine = {{"reply", {{"hold", true}}}},
                 .arguments = one_place()});
  std::vector<HttpCall> calls;
  calls.push_back(node.chat("a"));
  const EngineEvent first = node.generation();
  calls.push_back(node.chat("a"));
  node.await_waiting(1);
  calls.push_back(node.chat("b"));
  node.await_waiting(2);
  std::vector<int> engines{first.engine};
  node.engines().release(first.engine, first.request());
  for (int i = 0; i < 2; ++i) {
    const EngineEvent next = node.generation();
    engines.push_back(next.engine);
    node.engines().release(next.engine, next.request());
  }
  for (HttpCall& call : calls) EXPECT_EQ(call.status(), 200) << call.whole_body();
  EXPECT_EQ(engines, (std::vector<int>{0, 0, 1})) << "the call that stood in the line ran first";
}

// A client that keeps a model busy without a pause, until told to stop.
class BusyClient {
 public:
  BusyClient(TestNode& node, std::string_view model) {
    for (int i = 0; i < 3; ++i) {
      threads_.emplace_back([this, &node, model] {
        while (!stop_) {
          if (is_whole_stream(node, model) != 1) ++failed_;
          ++calls_;
        }
      });
    }
  }
  int stop() {
    stop_ = true;
    threads_.clear();
    return failed_;
  }
  int calls() const { return calls_; }

 private:
  std::atomic<bool> stop_ = false;
  std::atomic<int> failed_ = 0;
  std::atomic<int> calls_ = 0;
  std::vector<std::jthread> threads_;
};

TEST(Fairness, ABusyClientOfOneModelDelaysAnotherModelByAboutOneFairTurn) {
  TestNode node({.models = {{"a"}, {"b"}},
                 // A slow engine, so that its calls surely overlap.
                 .engine = {{"models", {{"models/a/", {{"reply", {{"pace_us", 10'000}}}}}}}},
                 .arguments = one_place({"--parallel", "2"})});
  EXPECT_EQ(is_whole_stream(node, "a"), 1);
  BusyClient busy(node, "a");
  node.await_observability(
      [](const json::object& page) { return number_in(page, "calls", "waiting") >= 1; });
  const auto before = Clock::now();
  EXPECT_EQ(is_whole_stream(node, "b"), 1);
  const auto took = std::chrono::duration_cast<std::chrono::milliseconds>(Clock::now() - before);
  EXPECT_EQ(busy.stop(), 0) << "nobody loses an answer";
  std::printf("served after %lld ms beside a client with %d calls\n",
              static_cast<long long>(took.count()), busy.calls());
  EXPECT_LT(took, std::chrono::seconds(8));
  expect_never_two_residents(node.engines());
}

TEST(Fairness, OneCallOfAnotherClientIsNotPutBehindLaterOnes) {
  TestNode node({.engine = {{"reply", {{"hold", true}}}}});
  HttpCall running = node.chat("a");
  EngineEvent generation = node.generation();
  HttpCall early = node.chat("a", R"("user":"early")");
  node.await_waiting(1);
  HttpCall late = node.chat("a", R"("user":"late")");
  node.await_waiting(2);
  node.engines().release(generation.engine, generation.request());
  generation = node.generation();
  EXPECT_NE(generation.text("body").find("early"), std::string::npos);
  node.engines().release(generation.engine, generation.request());
  generation = node.generation();
  EXPECT_NE(generation.text("body").find("late"), std::string::npos);
  node.engines().release(generation.engine, generation.request());
  EXPECT_EQ(late.status(), 200);
}

}  // namespace
}  // namespace werk::test
