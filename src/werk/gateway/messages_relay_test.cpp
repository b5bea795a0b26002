#include "werk/gateway/messages_relay.hpp"

#include <gtest/gtest.h>

namespace werk::gateway {
namespace {

using Form = MessagesRelay::Form;

constexpr std::string_view kStart =
    R"({"type":"message_start","message":{"id":"m","model":"theirs","usage":{"input_tokens":9,)"
    R"("cache_read_input_tokens":3,"cache_creation_input_tokens":4,"output_tokens":1}}})";

TEST(MessagesOutline, IsReadWithoutUnderstandingTheRest) {
  const auto outline =
      outline_messages(R"({"messages":{"odd":true},"model":"a\u0062c","stream":true})");
  ASSERT_TRUE(outline);
  EXPECT_EQ(outline->model, "abc");
  EXPECT_TRUE(outline->stream);
  EXPECT_FALSE(outline_messages("{}")->model);
  EXPECT_FALSE(outline_messages("{}")->stream);
  EXPECT_FALSE(outline_messages(R"({"stream":null})")->stream);
}

TEST(MessagesOutline, WhatItReadsMustFitAndStandOnce) {
  for (const std::string_view body :
       {"", "{", "[]", R"({"model":1})", R"({"model":""})", R"({"model":"a","model":"a"})",
        R"({"stream":1})", R"({"stream":true,"stream":true})"}) {
    const auto outline = outline_messages(body);
    ASSERT_FALSE(outline) << body;
    EXPECT_EQ(outline.error().code, ErrorCode::invalid_request) << body;
  }
}

TEST(MessagesOutline, TheModelIsReplacedOrAddedAndNothingElse) {
  EXPECT_EQ(with_model(R"( {"b":1.0, "model" : "x" ,"a":1e3} )", "new \"name\""),
            R"( {"b":1.0, "model" : "new \"name\"" ,"a":1e3} )");
  EXPECT_EQ(with_model(R"({"b":1})", "n"), R"({"b":1,"model":"n"})");
}

TEST(MessagesRelay, TheStartCarriesTheClientsNameAndTellsThePrompt) {
  MessagesRelay relay(Form::events, "mine");
  std::string out;
  ASSERT_TRUE(relay.event("message_start", kStart, out));
  EXPECT_NE(out.find(R"("id":"m","model":"mine","usage")"), std::string::npos) << out;
  EXPECT_TRUE(out.starts_with("event: message_start\ndata: {"));
  ASSERT_TRUE(relay.facts().started);
  EXPECT_EQ(relay.facts().started->prompt_tokens, 16u);
  EXPECT_EQ(relay.facts().started->cached_tokens, 3u);
}

TEST(MessagesRelay, LaterUsageReplacesWhatItNames) {
  MessagesRelay relay(Form::events, "mine");
  std::string out;
  ASSERT_TRUE(relay.event("message_start", kStart, out));
  ASSERT_TRUE(relay.event("", R"({"type":"message_delta","usage":{"output_tokens":5}})", out));
  ASSERT_TRUE(relay.facts().usage);
  EXPECT_EQ(relay.facts().usage->completion_tokens, 5u);
  EXPECT_EQ(relay.facts().usage->prompt_tokens, 16u);
  EXPECT_FALSE(relay.finish()) << "message_stop has not come";
  ASSERT_TRUE(relay.event("", R"({"type":"message_stop"})", out));
  EXPECT_TRUE(relay.done());
  EXPECT_TRUE(relay.finish());
}

TEST(MessagesRelay, NothingFollowsTheEnd) {
  MessagesRelay relay(Form::events, "mine");
  std::string out;
  ASSERT_TRUE(relay.event("", R"({"type":"message_stop"})", out));
  out.clear();
  EXPECT_TRUE(relay.event("", "[DONE]", out));
  EXPECT_TRUE(relay.event("", "garbage", out));
  EXPECT_EQ(out, "");
}

TEST(MessagesRelay, EveryShapeOfErrorEndsTheStream) {
  const auto code = [](std::string_view name, std::string_view data) {
    MessagesRelay relay(Form::events, "mine");
    std::string out;
    const Status taken = relay.event(name, data, out);
    EXPECT_FALSE(taken) << data;
    EXPECT_EQ(out, "") << data;
    return taken ? ErrorCode::internal : taken.error().code;
  };
  EXPECT_EQ(code("error", R"({"type":"error","error":{"type":"overloaded_error"}})"),
            ErrorCode::capacity);
  EXPECT_EQ(code("", R"({"type":"error","error":{"type":"rate_limit_error","message":"m"}})"),
            ErrorCode::queue_full);
  EXPECT_EQ(code("", R"({"error":"text"})"), ErrorCode::engine_failed);
  EXPECT_EQ(code("error", R"({"code":500,"message":"m","type":"server_error"})"),
            ErrorCode::engine_failed);
  EXPECT_EQ(code("error", "not json"), ErrorCode::engine_failed);
  EXPECT_EQ(code("", "not json"), ErrorCode::engine_failed);
  EXPECT_EQ(code("", "[1]"), ErrorCode::engine_failed);
  EXPECT_EQ(code("", R"({"no":"type"})"), ErrorCode::engine_failed);
}

TEST(MessagesRelay, AWholeMessageIsRelabelledAndRead) {
  MessagesRelay relay(Form::whole, "mine");
  const auto whole = relay.whole(
      R"({"type":"message","model":"theirs","x":1.0,"usage":{"input_tokens":9,"output_tokens":2})"
      "}");
  ASSERT_TRUE(whole);
  EXPECT_EQ(
      *whole,
      R"({"type":"message","model":"mine","x":1.0,"usage":{"input_tokens":9,"output_tokens":2}})");
  EXPECT_EQ(relay.facts().usage->prompt_tokens, 9u);
  EXPECT_EQ(relay.facts().usage->completion_tokens, 2u);
  EXPECT_FALSE(relay.whole(R"({"type":"error","error":{"message":"m"}})"));
  EXPECT_FALSE(relay.whole("{}"));
  EXPECT_FALSE(relay.whole(""));
}

}  // namespace
}  // namespace werk::gateway
