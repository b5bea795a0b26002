#include "werk/gateway/messages_fold.hpp"

#include <gtest/gtest.h>

namespace werk::gateway {
namespace {

Result<std::string> fold(const std::vector<chat::GenerationEvent>& events,
                         std::size_t bytes_max = 1000) {
  MessagesFold fold({.message_id = "msg_1", .client_model = "m", .bytes_max = bytes_max});
  for (const auto& event : events) {
    if (Status status = fold.event(event); !status) return pass_on(status);
  }
  return fold.finish();
}

TEST(MessagesFold, IsTheWholeMessage) {
  const auto message =
      fold({chat::Started{10, 4}, chat::ReasoningDelta{"h"}, chat::ReasoningDelta{"m"},
            chat::TextDelta{"a\n"}, chat::ToolCallDelta{0, "c", "f", " {\"z\": 1.0,"},
            chat::ToolCallDelta{0, "", "", "\"a\":\"\\u00e9\"}\n"},
            chat::Finished{chat::FinishReason::stop, std::nullopt, chat::Usage{10, 4, 5}}});
  ASSERT_TRUE(message);
  EXPECT_EQ(*message,
            R"({"id":"msg_1","type":"message","role":"assistant","model":"m","content":[)"
            R"({"type":"thinking","thinking":"hm","signature":"d2Vyaw=="},)"
            R"({"type":"text","text":"a\n"},)"
            R"({"type":"tool_use","id":"toolu_c","name":"f","input":{"z": 1.0,"a":"\u00e9"}}],)"
            R"("stop_reason":"tool_use","stop_sequence":null,"usage":{"input_tokens":6,)"
            R"("cache_creation_input_tokens":0,"cache_read_input_tokens":4,"output_tokens":5}})");
}

TEST(MessagesFold, ArgumentsCutByTheLimitAreAnEmptyInput) {
  const auto message = fold({chat::ToolCallDelta{0, "c", "f", "{\"a\":"},
                             chat::Finished{chat::FinishReason::length, {}, {}}});
  ASSERT_TRUE(message);
  EXPECT_NE(message->find(R"("input":{}}],"stop_reason":"max_tokens")"), std::string::npos);
}

TEST(MessagesFold, ArgumentsThatAreNoObjectAreTheEnginesFault) {
  const auto message = fold({chat::ToolCallDelta{0, "c", "f", "{\"a\":"}, chat::Finished{}});
  ASSERT_FALSE(message);
  EXPECT_EQ(message.error().code, ErrorCode::engine_failed);
}

TEST(MessagesFold, AnAnswerWithoutAnEndIsNoMessage) {
  EXPECT_FALSE(fold({chat::TextDelta{"a"}}));
  EXPECT_FALSE(fold({}));
  EXPECT_TRUE(fold({chat::Finished{}}));
}

TEST(MessagesFold, IsBounded) {
  EXPECT_FALSE(fold({chat::TextDelta{std::string(60, 'a')}, chat::TextDelta{std::string(60, 'b')},
                     chat::Finished{}},
                    100));
}

}  // namespace
}  // namespace werk::gateway
