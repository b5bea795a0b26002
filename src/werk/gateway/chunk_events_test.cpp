#include "werk/gateway/chunk_events.hpp"

#include <gtest/gtest.h>

#include <fmt/format.h>

#include "werk/gateway/shown_events.hpp"

namespace werk::gateway {
namespace {

// The filter, the translation behind it, and what came out.
struct Chain {
  explicit Chain(ChunkEventsOptions options = {})
      : filter(ChatStreamOptions{.client_model = "m", .call_id_seed = "s"}),
        events(filter.facts(), sink, options) {}

  Chain& send(std::string_view data) {
    if (status) status = filter.event("", data, events);
    if (status) status = events.advance();
    return *this;
  }
  Chain& delta(std::string_view json, std::string_view reason = "null") {
    return send(
        fmt::format(R"({{"model":"e","choices":[{{"index":0,"delta":{},"finish_reason":{}}}]}})",
                    json, reason));
  }
  Chain& finish() {
    if (status) status = filter.finish(events);
    if (status) status = events.finish();
    return *this;
  }

  ShownEvents sink;
  ChatStreamFilter filter;
  ChunkEvents events;
  Status status;
};

constexpr std::string_view kProgress =
    R"({"choices":[{"index":0,"delta":{"role":"assistant","content":null}}],"model":"e",)"
    R"("prompt_progress":{"total":7,"cache":3,"processed":3,"time_ms":1}})";
constexpr std::string_view kUsage =
    R"({"choices":[],"model":"e","usage":{"completion_tokens":5,"prompt_tokens":7,)"
    R"("prompt_tokens_details":{"cached_tokens":3}}})";

TEST(ChunkEvents, StartComesFromTheFirstProgressBeforeAnyToken) {
  Chain chain;
  chain.send(kProgress);
  EXPECT_EQ(chain.sink.shown, "[start 7 3]");
  chain.send(kProgress).delta(R"({"content":"a"})").delta("{}", "\"stop\"").send(kUsage);
  chain.send("[DONE]");
  EXPECT_EQ(chain.sink.shown, "[start 7 3][text a]") << "the end waits for the usage";
  chain.finish();
  ASSERT_TRUE(chain.status);
  EXPECT_EQ(chain.sink.shown, "[start 7 3][text a][end 0 used 7 3 5]");
}

TEST(ChunkEvents, ACountMadeBeforeStandsInForProgress) {
  Chain chain({.counted = {9, 1}});
  chain.delta(R"({"role":"assistant","content":""})");
  EXPECT_EQ(chain.sink.shown, "");
  chain.delta(R"({"content":"a"})", "\"length\"").finish();
  EXPECT_EQ(chain.sink.shown, "[start 9 1][text a][end 1]");
}

TEST(ChunkEvents, ReasoningOfEitherNameTextAndCalls) {
  Chain chain;
  chain.delta(R"({"reasoning":"h"})").delta(R"({"reasoning_content":"m","content":"a"})");
  chain.delta(R"({"tool_calls":[{"index":0,"id":"c","function":{"name":"f","arguments":"{"}}]})");
  chain.delta(R"({"tool_calls":[{"index":0,"function":{"arguments":"}"}},)"
              R"({"index":1,"function":{"name":"g","arguments":{"x":1}}}]})");
  chain.delta("{}", "\"stop\"").finish();
  ASSERT_TRUE(chain.status);
  EXPECT_EQ(chain.sink.shown,
            "[start 0 0][think h][think m][text a][call 0 c f {][call 0   }]"
            "[call 1 call_s2 g {\"x\":1}][end 3]");
}

TEST(ChunkEvents, TheStopSequenceIsWhatTheEngineTells) {
  const auto end = [](std::string_view chunk) {
    Chain chain;
    chain.send(chunk).finish();
    EXPECT_TRUE(chain.status);
    return chain.sink.shown;
  };
  EXPECT_EQ(end(R"({"choices":[{"index":0,"delta":{},"finish_reason":"stop",)"
                R"("stop_reason":"END"}]})"),
            "[start 0 0][end 0 at END]");
  EXPECT_EQ(end(R"({"choices":[{"index":0,"delta":{},"finish_reason":"stop","stop_reason":42}]})"),
            "[start 0 0][end 0]");
  EXPECT_EQ(end(R"({"choices":[{"index":0,"delta":{},"finish_reason":"stop"}],)"
                R"("__verbose":{"stopping_word":"END"}})"),
            "[start 0 0][end 0 at END]");
  EXPECT_EQ(end(R"({"choices":[{"index":0,"delta":{},"finish_reason":"stop"}],)"
                R"("__verbose":{"stopping_word":""}})"),
            "[start 0 0][end 0]");
}

TEST(ChunkEvents, AnAnswerThatFillsTheContextWasEndedByIt) {
  const auto end = [](std::uint64_t context) {
    Chain chain({.context_tokens = context});
    chain.delta(R"({"content":"a"})", "\"length\"").send(kUsage).finish();
    return chain.sink.shown;
  };
  EXPECT_EQ(end(12), "[start 0 0][text a][end 2 used 7 3 5]");
  EXPECT_EQ(end(13), "[start 0 0][text a][end 1 used 7 3 5]");
}

TEST(ChunkEvents, EscapedTextMayBeCutInsideASurrogatePair) {
  Chain chain;
  chain.delta(R"({"content":"a\ud83d"})").delta(R"({"content":"\ude00b\\ud83d"})");
  chain.delta(R"({"content":"c\ud83d"})").delta(R"({"content":"d\uD83D"})");
  chain.delta(R"({"tool_calls":[{"index":0,"id":"c","function":{"name":"f",)"
              R"("arguments":"\"\ud83d"}}]})");
  chain.delta(R"({"tool_calls":[{"index":0,"function":{"arguments":"\ude00\""}}]})");
  chain.delta("{}", "\"stop\"").finish();
  ASSERT_TRUE(chain.status);
  const std::string r = "\xEF\xBF\xBD";
  EXPECT_EQ(chain.sink.shown, "[start 0 0][text a][text 😀b\\ud83d][text c][text " + r +
                                  "d][call 0 c f \"][call 0   😀\"][text " + r + "][end 3]");
}

TEST(ChunkEvents, FailuresOfTheEngineAndOfTheSinkEndIt) {
  Chain engine;
  engine.send(kProgress).send(R"({"error":{"message":"gone","type":"server_error","code":500}})");
  ASSERT_FALSE(engine.status);
  EXPECT_EQ(engine.sink.shown, "[start 7 3]");
  Chain sink;
  sink.sink.fails = true;
  sink.delta(R"({"content":"a"})").delta(R"({"content":"b"})");
  ASSERT_FALSE(sink.status);
  EXPECT_EQ(sink.sink.shown, "[start 0 0]");
  Chain cut;
  cut.delta(R"({"content":"a"})").finish();
  EXPECT_FALSE(cut.status) << "an end without a reason is none";
}

TEST(ChunkEvents, OnlyTheFirstChoiceCounts) {
  Chain chain;
  chain.send(R"({"choices":[{"index":1,"delta":{"content":"x"}},)"
             R"({"index":0,"delta":{"content":"a"},"finish_reason":"stop"}]})");
  chain.finish();
  EXPECT_EQ(chain.sink.shown, "[start 0 0][text a][end 0]");
}

}  // namespace
}  // namespace werk::gateway
