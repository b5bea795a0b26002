#include "werk/gateway/messages_stream.hpp"

#include <gtest/gtest.h>

namespace werk::gateway {
namespace {

struct Stream {
  explicit Stream(MessageBlocksOptions blocks = {})
      : stream(MessagesStreamOptions{"msg_1", "my \"model\"", "req_1", std::move(blocks)}, out) {}

  Stream& send(const chat::GenerationEvent& event) {
    if (status) status = stream.event(event);
    return *this;
  }
  Stream& finish(chat::FinishReason reason, std::optional<std::string> stop = std::nullopt) {
    return send(chat::Finished{reason, std::move(stop), chat::Usage{10, 4, 5}});
  }
  bool says(std::string_view text) const { return out.find(text) != std::string::npos; }
  std::size_t count(std::string_view text) const {
    std::size_t found = 0;
    for (std::size_t at = out.find(text); at != std::string::npos; at = out.find(text, at + 1))
      ++found;
    return found;
  }

  std::string out;
  MessagesStream stream;
  Status status;
};

TEST(MessagesStream, IsByteForByteTheDialect) {
  Stream stream;
  stream.send(chat::Started{10, 4});
  stream.stream.ping();
  stream.send(chat::ReasoningDelta{"hm"}).send(chat::TextDelta{"hi"});
  stream.send(chat::ToolCallDelta{0, "c1", "look", "{\"a\":1}"});
  stream.finish(chat::FinishReason::tool_calls);
  ASSERT_TRUE(stream.status);
  EXPECT_EQ(
      stream.out,
      "event: message_start\n"
      R"(data: {"type":"message_start","message":{"id":"msg_1","type":"message",)"
      R"("role":"assistant","model":"my \"model\"","content":[],"stop_reason":null,)"
      R"("stop_sequence":null,"usage":{"input_tokens":6,"cache_creation_input_tokens":0,)"
      R"("cache_read_input_tokens":4,"output_tokens":0}}})"
      "\n\nevent: ping\ndata: {\"type\":\"ping\"}\n\n"
      "event: content_block_start\n"
      R"(data: {"type":"content_block_start","index":0,"content_block":{"type":"thinking",)"
      R"("thinking":"","signature":""}})"
      "\n\nevent: content_block_delta\n"
      R"(data: {"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta",)"
      R"("thinking":"hm"}})"
      "\n\nevent: content_block_delta\n"
      R"(data: {"type":"content_block_delta","index":0,"delta":{"type":"signature_delta",)"
      R"("signature":"d2Vyaw=="}})"
      "\n\nevent: content_block_stop\n"
      R"(data: {"type":"content_block_stop","index":0})"
      "\n\nevent: content_block_start\n"
      R"(data: {"type":"content_block_start","index":1,"content_block":{"type":"text","text":""}})"
      "\n\nevent: content_block_delta\n"
      R"(data: {"type":"content_block_delta","index":1,"delta":{"type":"text_delta","text":"hi"}})"
      "\n\nevent: content_block_stop\n"
      R"(data: {"type":"content_block_stop","index":1})"
      "\n\nevent: content_block_start\n"
      R"(data: {"type":"content_block_start","index":2,"content_block":{"type":"tool_use",)"
      R"("id":"toolu_c1","name":"look","input":{}}})"
      "\n\nevent: content_block_delta\n"
      R"(data: {"type":"content_block_delta","index":2,"delta":{"type":"input_json_delta",)"
      R"("partial_json":"{\"a\":1}"}})"
      "\n\nevent: content_block_stop\n"
      R"(data: {"type":"content_block_stop","index":2})"
      "\n\nevent: message_delta\n"
      R"(data: {"type":"message_delta","delta":{"stop_reason":"tool_use","stop_sequence":null},)"
      R"("usage":{"input_tokens":6,"cache_creation_input_tokens":0,"cache_read_input_tokens":4,)"
      R"("output_tokens":5}})"
      "\n\nevent: message_stop\ndata: {\"type\":\"message_stop\"}\n\n");
}

TEST(MessagesStream, AnEndWithoutEventsIsAValidEmptyMessage) {
  Stream stream;
  stream.send(chat::Finished{});
  EXPECT_TRUE(stream.status);
  EXPECT_EQ(stream.count("event: message_start"), 1u);
  EXPECT_EQ(stream.count("content_block"), 0u);
  EXPECT_TRUE(stream.says(R"("stop_reason":"end_turn")"));
  EXPECT_TRUE(stream.out.ends_with("event: message_stop\ndata: {\"type\":\"message_stop\"}\n\n"));
}

TEST(MessagesStream, TheReasonFollowsWhatWasSent) {
  using chat::FinishReason;
  const auto reason = [](FinishReason end, std::size_t calls) {
    Stream stream;
    for (std::size_t i = 0; i < calls; ++i)
      stream.send(chat::ToolCallDelta{static_cast<std::uint32_t>(i), "", "f", "{}"});
    stream.finish(end);
    EXPECT_TRUE(stream.status);
    const std::string_view key = R"("delta":{"stop_reason":")";
    const std::size_t at = stream.out.find(key) + key.size();
    return stream.out.substr(at, stream.out.find('"', at) - at);
  };
  EXPECT_EQ(reason(FinishReason::stop, 0), "end_turn");
  EXPECT_EQ(reason(FinishReason::stop, 1), "tool_use");
  EXPECT_EQ(reason(FinishReason::tool_calls, 0), "end_turn");
  EXPECT_EQ(reason(FinishReason::tool_calls, 2), "tool_use");
  EXPECT_EQ(reason(FinishReason::length, 1), "max_tokens");
  EXPECT_EQ(reason(FinishReason::context, 0), "model_context_window_exceeded");
  EXPECT_EQ(reason(FinishReason::content_filter, 0), "refusal");
}

TEST(MessagesStream, OnlyAStopSequenceOfTheRequestIsReported) {
  Stream asked({.stop_sequences = {"END"}});
  asked.send(chat::TextDelta{"a"}).finish(chat::FinishReason::stop, "END");
  EXPECT_TRUE(asked.says(R"("stop_reason":"stop_sequence","stop_sequence":"END")"));
  Stream other({.stop_sequences = {"END"}});
  other.send(chat::TextDelta{"a"}).finish(chat::FinishReason::stop, "<|im_end|>");
  EXPECT_TRUE(other.says(R"("stop_reason":"end_turn","stop_sequence":null)"));
}

TEST(MessagesStream, UsageOfTheStartStandsInWhereTheEndHasNone) {
  Stream stream;
  stream.send(chat::Started{10, 4}).send(chat::Started{99, 0}).send(chat::Finished{});
  EXPECT_EQ(stream.count(R"("input_tokens":6,)"), 2u);
  EXPECT_EQ(stream.count("event: message_start"), 1u);
  Stream more_cached;
  more_cached.send(chat::Started{3, 4});
  EXPECT_TRUE(more_cached.says(R"("input_tokens":0,)")) << "never below zero";
}

TEST(MessagesStream, NothingFollowsAnError) {
  Stream stream;
  stream.send(chat::TextDelta{"a"});
  Error error{ErrorCode::engine_failed, "gone", Origin::engine};
  stream.stream.error(error);
  EXPECT_TRUE(
      stream.out.ends_with("event: error\ndata: {\"type\":\"error\",\"error\":{\"type\":"
                           "\"api_error\",\"message\":\"gone\"},"
                           "\"request_id\":\"req_1\"}\n\n"));
  const std::string before = stream.out;
  stream.send(chat::TextDelta{"b"}).finish(chat::FinishReason::stop);
  stream.stream.ping();
  stream.stream.error(error);
  EXPECT_EQ(stream.out, before);
  EXPECT_TRUE(stream.stream.ended());
}

TEST(MessagesStream, AnErrorMayComeBeforeTheStart) {
  Stream stream;
  stream.stream.ping();
  EXPECT_FALSE(stream.stream.started());
  stream.stream.error(Error{ErrorCode::start_failed, "no"});
  EXPECT_TRUE(stream.out.starts_with("event: ping\n"));
  EXPECT_EQ(stream.count("event: error\n"), 1u);
  EXPECT_EQ(stream.count("message_start"), 0u);
}

TEST(MessagesStream, CallsThatCannotBeMadeOfTheAnswerFailIt) {
  const auto fails = [](std::vector<chat::ToolCallDelta> deltas, chat::FinishReason reason) {
    Stream stream;
    for (const auto& delta : deltas) stream.send(delta);
    stream.finish(reason);
    if (stream.status) return std::string();
    EXPECT_FALSE(stream.stream.ended());
    EXPECT_FALSE(stream.says("message_stop"));
    EXPECT_EQ(stream.status.error().code, ErrorCode::engine_failed);
    stream.stream.error(stream.status.error());
    EXPECT_TRUE(stream.stream.ended());
    EXPECT_TRUE(stream.says("event: error"));
    return stream.status.error().message;
  };
  using chat::FinishReason;
  EXPECT_NE(fails({{0, "c", "", "{}"}}, FinishReason::stop).find("name"), std::string::npos);
  EXPECT_NE(fails({{0, "c", "f", "[1]"}}, FinishReason::stop).find("object"), std::string::npos);
  EXPECT_NE(fails({{0, "c", "f", "{\"a\""}}, FinishReason::tool_calls), "");
  EXPECT_NE(fails({{0, "c", "f", "{}"}, {1, "d", "g", "{}"}, {0, "", "", "{\"b\":2}"}},
                  FinishReason::stop),
            "");
  EXPECT_EQ(fails({{0, "c", "f", "{\"a\""}}, FinishReason::length), "") << "a limit may cut";
  EXPECT_EQ(fails({{0, "c", "f", ""}}, FinishReason::stop), "") << "no arguments are an object";
  EXPECT_EQ(
      fails({{0, "c", "f", "{}"}, {1, "d", "g", "{}"}, {0, "", "", "\n"}}, FinishReason::stop), "")
      << "blanks behind whole arguments";
}

TEST(MessagesStream, ACallWithALateNameIsHeldUntilItHasOne) {
  Stream stream;
  stream.send(chat::ToolCallDelta{0, "c", "", "{\"a\""}).send(chat::TextDelta{"t"});
  EXPECT_FALSE(stream.says("content_block"));
  stream.send(chat::ToolCallDelta{0, "", "f", ":1}"}).finish(chat::FinishReason::stop);
  ASSERT_TRUE(stream.status);
  EXPECT_TRUE(stream.says(R"("partial_json":"{\"a\":1}")"));
  EXPECT_LT(stream.out.find("tool_use"), stream.out.find("text_delta"));
}

TEST(MessagesStream, WhatIsHeldBackIsBounded) {
  Stream stream({.held_bytes_max = 10});
  stream.send(chat::ToolCallDelta{0, "c", "f", "{"}).send(chat::TextDelta{"12345678901"});
  ASSERT_FALSE(stream.status);
  EXPECT_EQ(stream.status.error().code, ErrorCode::engine_failed);
  Stream many;
  for (std::uint32_t i = 0; i < 200 && many.status; ++i)
    many.send(chat::ToolCallDelta{i, "c", "f", "{}"});
  EXPECT_FALSE(many.status);
}

TEST(MessagesStream, IdsAreMadeFitForTheDialect) {
  Stream stream({.call_id_seed = "s"});
  stream.send(chat::ToolCallDelta{0, "", "f", "{}"}).send(chat::ToolCallDelta{1, "a:b", "f", "{}"});
  stream.send(chat::ToolCallDelta{2, "toolu_x", "f", "{}"}).finish(chat::FinishReason::stop);
  EXPECT_TRUE(stream.says(R"("id":"toolu_s0")"));
  EXPECT_TRUE(stream.says(R"("id":"toolu_a_b")"));
  EXPECT_TRUE(stream.says(R"("id":"toolu_x")"));
}

TEST(MessagesStream, ForbiddenThinkingIsLeftOut) {
  Stream stream({.thinking = ThinkingBlocks::leave_out});
  stream.send(chat::TextDelta{"a"}).send(chat::ReasoningDelta{"h\xF0"}).send(chat::TextDelta{"b"});
  stream.finish(chat::FinishReason::stop);
  EXPECT_FALSE(stream.says("thinking"));
  EXPECT_EQ(stream.count("content_block_start\n"), 1u);
}

TEST(MessagesStream, BytesThatAreNoUtf8BecomeReplacementCharacters) {
  Stream stream;
  stream.send(chat::TextDelta{"a\xFF\xC0z\xE6\xBC"}).finish(chat::FinishReason::stop);
  EXPECT_TRUE(stream.says("\"a\xEF\xBF\xBD\xEF\xBF\xBDz\""));
  EXPECT_TRUE(stream.says("\"\xEF\xBF\xBD\""));
}

}  // namespace
}  // namespace werk::gateway
