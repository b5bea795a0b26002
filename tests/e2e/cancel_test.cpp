// Clients that leave, at every stage: the engine's connection closes at once, what was waiting
// never reaches the engine, and the slot comes back. Times are printed; limits on them are
// watchdogs.
#include <gtest/gtest.h>

#include <chrono>
#include <cstdio>

#include "tests/e2e/chat_answer.hpp"
#include "tests/e2e/test_node.hpp"

namespace werk::test {
namespace {

namespace json = boost::json;

std::uint64_t now_us() {
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  return static_cast<std::uint64_t>(
      std::chrono::duration_cast<std::chrono::microseconds>(now).count());
}

// What all these tests share: an engine that holds each call until told.
class Cancel : public ::testing::Test {
 protected:
  // The client leaves; the engine must see its connection closed.
  void expect_prompt_close(const EngineEvent& generation, std::uint64_t left_us,
                           std::string_view what) {
    const EngineEvent closed = node.engines().expect("closed", [&](const EngineEvent& event) {
      return event.engine == generation.engine && event.request() == generation.request();
    });
    const double took_ms = static_cast<double>(closed.number("at_us") - left_us) / 1000;
    std::printf("%.*s: the engine saw the end after %.2f ms\n", static_cast<int>(what.size()),
                what.data(), took_ms);
    EXPECT_LT(took_ms, 1000);
  }
  void expect_free_for_the_next() {
    HttpCall next = node.chat("a");
    const EngineEvent generation = node.generation();
    node.engines().finish(generation.engine, generation.request());
    EXPECT_EQ(next.status(), 200) << next.whole_body();
    const json::object page = node.await_observability([](const json::object& now) {
      return number_in(runtime_of(now, "a"), "slots", "busy") == 0;
    });
    EXPECT_EQ(number_in(page, "calls", "active"), 0u);
    EXPECT_EQ(node.spawned(), 1u);
  }

  TestNode node{{.engine = {{"reply", {{"hold", true}, {"gated", true}}}}}};
};

TEST_F(Cancel, AStreamWhoseClientLeavesAfterThreeTokensEndsAtTheEngine) {
  HttpCall stream = node.chat("a", R"("stream":true)");
  const EngineEvent generation = node.generation();
  node.engines().release(generation.engine, generation.request());
  node.engines().step(generation.engine, generation.request(), 3);
  stream.body_until("tok2");
  const std::uint64_t left_us = now_us();
  stream.close();
  expect_prompt_close(generation, left_us, "decoding, streamed");
  expect_free_for_the_next();
}

TEST_F(Cancel, AWholeAnswerWhoseClientLeavesEndsAtTheEngine) {
  HttpCall call = node.chat("a");
  const EngineEvent generation = node.generation();
  node.engines().release(generation.engine, generation.request());
  node.engines().step(generation.engine, generation.request(), 3);
  const std::uint64_t left_us = now_us();
  call.close();
  expect_prompt_close(generation, left_us, "decoding, whole");
  expect_free_for_the_next();
}

TEST_F(Cancel, AClientThatLeavesASilentEngineIsNoticedByReading) {
  HttpCall call = node.chat("a", R"("stream":true)");
  const EngineEvent generation = node.generation();
  const std::uint64_t left_us = now_us();
  call.close();
  expect_prompt_close(generation, left_us, "before the first byte");
  expect_free_for_the_next();
}

TEST_F(Cancel, AResetIsNoticedAsAnOrderlyCloseIs) {
  HttpCall call = node.chat("a", R"("stream":true)");
  const EngineEvent generation = node.generation();
  const std::uint64_t left_us = now_us();
  call.reset();
  expect_prompt_close(generation, left_us, "by reset");
  expect_free_for_the_next();
}

TEST_F(Cancel, AClientThatOnlyEndsItsSendingSideGetsItsAnswer) {
  for (const char* stream : {"true", "false"}) {
    HttpCall call = node.chat("a", std::string(R"("stream":)") + stream);
    const EngineEvent generation = node.generation();
    call.half_close();
    EXPECT_EQ(node.get("/health").status(), 200);
    EXPECT_EQ(number_in(node.observability(), "calls", "active"), 1u);
    node.engines().finish(generation.engine, generation.request());
    EXPECT_EQ(call.status(), 200);
    call.whole_body();
    EXPECT_EQ(call.end(), BodyEnd::proper);
    EXPECT_NE(call.whole_body().find("tok7"), std::string::npos) << call.whole_body();
  }
  EXPECT_EQ(node.engines().count("closed"), 0u);
}

TEST_F(Cancel, CallsThatLeaveTheLineNeverReachTheEngineAndALaterOneIsNext) {
  HttpCall running = node.chat("a");
  const EngineEvent generation = node.generation();
  std::vector<HttpCall> leaving;
  for (std::uint64_t i = 1; i <= 5; ++i) {
    leaving.push_back(
        node.chat("a", i % 2 == 0 ? R"("user":"leaves")" : R"("user":"leaves","stream":true)"));
    node.await_waiting(i);
  }
  for (HttpCall& call : leaving) call.close();
  node.await_waiting(0);
  HttpCall live = node.chat("a", R"("user":"stays")");
  node.await_waiting(1);
  node.engines().finish(generation.engine, generation.request());
  EXPECT_EQ(running.status(), 200);
  const EngineEvent next = node.generation();
  EXPECT_NE(next.text("body").find("stays"), std::string::npos) << next.text("body");
  node.engines().finish(next.engine, next.request());
  EXPECT_EQ(live.status(), 200);
  EXPECT_EQ(node.generations(), 2u);
  EXPECT_EQ(number_in(node.observability(), "calls", "cancelled"), 5u);
}

TEST(CancelSlot, IsGivenAwayAgainOnlyWhenTheEngineHasLetGoOfIt) {
  TestNode node({.engine = {{"busy_after_close", true}, {"reply", {{"hold", true}}}}});
  HttpCall leaves = node.chat("a");
  const EngineEvent first = node.generation();
  leaves.close();
  node.engines().expect("closed");
  HttpCall next = node.chat("a");
  node.await_waiting(1);
  // The engine has been asked and still works on what was left.
  node.engines().expect("request",
                        [](const EngineEvent& event) { return event.text("target") == "/slots"; });
  const json::object runtime = runtime_of(node.observability(), "a");
  EXPECT_EQ(number_in(runtime, "slots", "busy"), 1u);
  EXPECT_EQ(node.generations(), 1u);
  node.engines().release(first.engine, first.request());
  const EngineEvent second = node.generation();
  node.engines().release(second.engine, second.request());
  EXPECT_EQ(next.status(), 200) << next.whole_body();
}

TEST(CancelWaiting, ACallThatLeavesWhileItWaitsForAPlaceLoadsNothing) {
  TestNode node({.models = {{"a"}, {"b"}},
                 .engine = {{"reply", {{"hold", true}}}},
                 .arguments = {"--max-resident", "1"}});
  HttpCall running = node.chat("a");
  EngineEvent generation = node.generation();
  HttpCall leaves = node.chat("b");
  node.await_waiting(1);
  leaves.close();
  node.await_waiting(0);
  node.engines().release(generation.engine, generation.request());
  EXPECT_EQ(running.status(), 200);
  HttpCall again = node.chat("a");
  generation = node.generation();
  node.engines().release(generation.engine, generation.request());
  EXPECT_EQ(again.status(), 200);
  EXPECT_EQ(node.spawned(), 1u);
}

TEST(CancelWaiting, AClientThatSendsHalfABodyAndLeavesIsNoCall) {
  TestNode node({});
  {
    const HttpCall call(node.port(),
                        "POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\n"
                        "Content-Length: 1000\r\n\r\n{\"model\":\"a\",");
    node.await_observability(
        [](const json::object& page) { return number_in(page, "calls", "active") == 1; });
  }
  node.await_observability(
      [](const json::object& page) { return number_in(page, "calls", "active") == 0; });
  EXPECT_EQ(node.spawned(), 0u);
  EXPECT_EQ(node.chat("a").status(), 200);
}

}  // namespace
}  // namespace werk::test
