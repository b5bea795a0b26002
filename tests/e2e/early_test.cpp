// Early headers on the real node: a streamed call that waits for a load or for a slot hears of it,
// and what comes after is the answer, or the error and a cut.
#include <gtest/gtest.h>

#include "tests/e2e/test_node.hpp"

namespace werk::test {
namespace {

constexpr std::string_view kStream = R"("stream":true,"max_tokens":2)";

std::size_t find_in(const std::string& text, std::string_view part) { return text.find(part); }

TEST(EarlyHeaders, ACallThatWaitsForALoadHearsOfItAndGetsItsWholeAnswer) {
  TestNode node({.engine = {{"start", "hold"}}, .arguments = {"--early-headers", "1ms"}});
  HttpCall call = node.chat("a", kStream);
  const int engine = node.engines().expect("spawned").engine;
  EXPECT_EQ(call.status(), 200);
  EXPECT_EQ(call.header("Content-Type"), "text/event-stream; charset=utf-8");
  EXPECT_EQ(find_in(call.body_until("waiting"), ": waiting\n\n"), 0u);
  node.engines().ready(engine);
  EXPECT_NE(find_in(call.whole_body(), "data: [DONE]"), std::string::npos) << call.whole_body();
  EXPECT_EQ(call.end(), BodyEnd::proper);
}

TEST(EarlyHeaders, ALoadThatFailsThenIsToldInTheStreamWhichIsCut) {
  TestNode node({.engine = {{"start", "hold"}}, .arguments = {"--early-headers", "1ms"}});
  HttpCall call(node.port(), "POST", "/v1/messages",
                R"({"model":"a","max_tokens":2,"stream":true,)"
                R"("messages":[{"role":"user","content":"Hi"}]})");
  const int engine = node.engines().expect("spawned").engine;
  call.body_until("ping\"}");
  node.engines().exit(engine, 1, "0.00.100.000 E srv: not today\n");
  EXPECT_EQ(find_in(call.whole_body(), "event: ping\n"), 0u);
  EXPECT_NE(find_in(call.whole_body(), "event: error\n"), std::string::npos) << call.whole_body();
  EXPECT_NE(find_in(call.whole_body(), "not today"), std::string::npos) << call.whole_body();
  EXPECT_EQ(call.end(), BodyEnd::cut);
}

TEST(EarlyHeaders, ACallThatWaitsForASlotHearsOfIt) {
  TestNode node({.engine = {{"reply", {{"hold", true}}}},
                 .arguments = {"--early-headers", "1ms", "--parallel", "1"}});
  HttpCall first = node.chat("a", R"("max_tokens":2)");
  const EngineEvent running = node.generation();
  HttpCall second = node.chat("a", kStream);
  second.body_until(": waiting\n\n");
  node.engines().release(running.engine, running.request());
  EXPECT_EQ(first.status(), 200);
  const EngineEvent next = node.generation();
  node.engines().release(next.engine, next.request());
  EXPECT_NE(find_in(second.whole_body(), "data: [DONE]"), std::string::npos);
  EXPECT_EQ(second.end(), BodyEnd::proper);
}

TEST(EarlyHeaders, AClientThatLeavesThenLeavesNothingBehind) {
  TestNode node({.engine = {{"start", "hold"}}, .arguments = {"--early-headers", "1ms"}});
  HttpCall call = node.chat("a", kStream);
  const int engine = node.engines().expect("spawned").engine;
  call.body_until("waiting");
  call.close();
  node.await_observability(
      [](const auto& page) { return number_in(page, "calls", "active") == 0; });
  node.engines().ready(engine);
  EXPECT_EQ(node.chat("a").status(), 200);
  EXPECT_EQ(node.spawned(), 1u);
}

}  // namespace
}  // namespace werk::test
