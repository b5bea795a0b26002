#include "werk/app/bench/answer_scan.hpp"

#include <gtest/gtest.h>

namespace werk::app::bench {
namespace {

std::string event(std::string_view data) { return "data: " + std::string(data) + "\n\n"; }

constexpr std::string_view kText = R"({"choices":[{"index":0,"delta":{"content":"x"}}]})";
constexpr std::string_view kEnd = R"({"choices":[{"delta":{},"finish_reason":"stop"}]})";
constexpr std::string_view kUsage =
    R"({"choices":[],"usage":{"prompt_tokens":3,"completion_tokens":5}})";

TEST(AnswerScan, CountsTextReasoningAndToolCallsAndNothingElse) {
  AnswerScan scan(Dialect::openai);
  std::string stream = event(R"({"choices":[{"delta":{"role":"assistant","content":null}}]})") +
                       event(R"({"choices":[{"delta":{"role":"assistant","content":""}}]})") +
                       ": ping\n\n" + event(R"({"choices":[],"prompt_progress":{"total":4}})");
  EXPECT_EQ(scan.feed(stream).value(), 0u);
  stream = event(kText) + event(R"({"choices":[{"delta":{"reasoning_content":"hm"}}]})") +
           event(R"({"choices":[{"delta":{"reasoning":"hm"}}]})") +
           event(R"({"choices":[{"delta":{"tool_calls":[{"index":0}]}}]})") +
           event(R"({"choices":[{"delta":{"tool_calls":[]}}]})");
  EXPECT_EQ(scan.feed(stream).value(), 4u);
}

TEST(AnswerScan, IsWholeWithAFinishReasonAndTellsItsUsage) {
  AnswerScan scan(Dialect::openai);
  const std::string stream = event(kText) + event(kEnd) + event(kUsage) + event("[DONE]");
  std::uint32_t pieces = 0;
  for (const char& byte : stream) pieces += scan.feed({&byte, 1}).value();
  EXPECT_EQ(pieces, 1u);
  EXPECT_TRUE(scan.finish());
  EXPECT_EQ(scan.finish_reason(), "stop");
  EXPECT_EQ(scan.completion_tokens(), 5u);
  EXPECT_EQ(scan.usage()->at("prompt_tokens").as_int64(), 3);
}

TEST(AnswerScan, AServerThatCountsNothingGivesNoCount) {
  AnswerScan scan(Dialect::openai);
  const std::string stream = event(kText) + event(R"({"choices":[],"usage":null})") + event(kEnd);
  EXPECT_TRUE(scan.feed(stream));
  EXPECT_TRUE(scan.finish());
  EXPECT_FALSE(scan.completion_tokens());
  EXPECT_FALSE(scan.usage());
}

TEST(AnswerScan, ACleanEndWithoutAFinishReasonIsACutAnswer) {
  AnswerScan scan(Dialect::openai);
  EXPECT_TRUE(scan.feed(event(kText)));
  EXPECT_FALSE(scan.finish());
}

TEST(AnswerScan, AnErrorWithinTheStreamIsToldInTheServersWords) {
  AnswerScan chat(Dialect::openai);
  const auto failed = chat.feed(event(kText) + event(R"({"error":{"message":"out of it"}})"));
  ASSERT_FALSE(failed);
  EXPECT_EQ(failed.error().message, "out of it");
  AnswerScan messages(Dialect::anthropic);
  const auto also = messages.feed(
      "event: error\n" + event(R"({"type":"error","error":{"type":"api_error","message":"no"}})"));
  ASSERT_FALSE(also);
  EXPECT_EQ(also.error().message, "no");
}

TEST(AnswerScan, ReadsAMessageWithItsUsageAtBothEnds) {
  AnswerScan scan(Dialect::anthropic);
  std::string stream =
      event(R"({"type":"message_start","message":{"usage":{"input_tokens":9,"output_tokens":1}}})");
  EXPECT_EQ(scan.feed(stream).value(), 0u);
  EXPECT_FALSE(scan.completion_tokens()) << "the beginning counts no answer";
  stream =
      event(R"({"type":"content_block_start","content_block":{"type":"text","text":""}})") +
      event(R"({"type":"ping"})") +
      event(R"({"type":"content_block_delta","delta":{"type":"text_delta","text":"x"}})") +
      event(R"({"type":"content_block_delta","delta":{"type":"thinking_delta","thinking":"x"}})") +
      event(R"({"type":"content_block_start","content_block":{"type":"tool_use","id":"1"}})") +
      event(R"({"type":"content_block_delta","delta":{"partial_json":""}})") +
      event(R"({"type":"content_block_delta","delta":{"partial_json":"{}"}})") +
      event(R"({"type":"message_delta","delta":{"stop_reason":"tool_use"},)"
            R"("usage":{"output_tokens":4}})") +
      event(R"({"type":"message_stop"})");
  EXPECT_EQ(scan.feed(stream).value(), 4u);
  EXPECT_TRUE(scan.finish());
  EXPECT_EQ(scan.finish_reason(), "tool_use");
  EXPECT_EQ(scan.completion_tokens(), 4u);
  EXPECT_EQ(scan.usage()->at("input_tokens").as_int64(), 9);
}

TEST(AnswerScan, CallsWhomItReadsAServer) {
  AnswerScan scan(Dialect::openai);
  const auto read = scan.feed("data: " + std::string(http::kSseEventBytesMax + 1, 'x') + "\n\n");
  ASSERT_FALSE(read);
  EXPECT_TRUE(read.error().message.starts_with("an event of the server's stream is longer"))
      << read.error().message;
}

TEST(ErrorWords, OfOurClientAreSaidOfAServer) {
  const Error broken{ErrorCode::engine_failed, "the engine's answer is malformed: the engine?",
                     Origin::engine};
  EXPECT_EQ(of_server(broken).message, "the server's answer is malformed: the engine?");
  EXPECT_EQ(of_server(broken).code, ErrorCode::engine_failed);
  EXPECT_EQ(of_server({ErrorCode::io, "cannot connect"}).message, "cannot connect");
}

TEST(ErrorWords, AreFoundInEveryUsualEnvelope) {
  EXPECT_EQ(error_words(R"({"error":{"message":"a"}})"), "a");
  EXPECT_EQ(error_words(R"({"error":"b"})"), "b");
  EXPECT_EQ(error_words(R"({"message":"c"})"), "c");
  EXPECT_EQ(error_words(R"({"detail":"d"})"), "d");
  EXPECT_EQ(error_words("<html>\x01"), "<html>?");
  EXPECT_EQ(error_words(""), "no reason was given");
  EXPECT_EQ(error_words(std::string(1000, 'x')).size(), 503u);
}

}  // namespace
}  // namespace werk::app::bench
