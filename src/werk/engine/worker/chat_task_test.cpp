#include "werk/engine/worker/chat_task.hpp"

#include <gtest/gtest.h>

namespace werk::engine::worker {
namespace {

std::string sent(std::string_view body) {
  const auto task = read_chat_task(body);
  return task ? generate_message(7, *task) : task.error().param + ": " + task.error().message;
}

TEST(ChatTask, KeepsWhatTemplatesWantAndLeavesOutTheRest) {
  EXPECT_EQ(
      sent(R"({"model":"m","stream":true,"messages":[{"role":"developer","content":"s"},)"
           R"({"role":"user","content":[{"type":"text","text":"a"},{"type":"text","text":"b"}]},)"
           R"({"role":"assistant","content":null,"tool_calls":[{"id":"1","type":"function",)"
           R"("function":{"name":"f","arguments":"{\"x\":[1]}"}}]}],)"
           R"("temperature":0,"top_k":-1,"seed":3,"max_completion_tokens":9,"user":"u"})"),
      R"({"type":"generate","id":7,"messages":[{"role":"system","content":"s"},)"
      R"({"role":"user","content":"a\nb"},{"role":"assistant","content":"","tool_calls":)"
      R"([{"id":"1","type":"function","function":{"name":"f","arguments":{"x":[1]}}}]}],)"
      R"("sampling":{"temperature":0,"seed":3},"max_tokens":9})");
}

TEST(ChatTask, CountsThePromptAloneWithToolsAndVariables) {
  const auto task = read_chat_task(
      R"({"messages":[{"role":"user","content":"a"}],"tools":[{"type":"function"}],)"
      R"("chat_template_kwargs":{"enable_thinking":false},"stop":"x","max_tokens":-1})");
  ASSERT_TRUE(task.has_value());
  EXPECT_EQ(count_message(1, *task),
            R"({"type":"count","id":1,"messages":[{"role":"user","content":"a"}],)"
            R"("tools":[{"type":"function"}],"template":{"enable_thinking":false}})");
  EXPECT_TRUE(task->has_tools);
  EXPECT_EQ(task->stops, std::vector<std::string>{"x"});
}

TEST(ChatTask, SendsNoToolsThatMayNotBeUsed) {
  const auto task = read_chat_task(
      R"({"messages":[{"role":"user","content":"a"}],"tools":[{}],"tool_choice":"none"})");
  ASSERT_TRUE(task.has_value());
  EXPECT_FALSE(task->has_tools);
}

TEST(ChatTask, RefusesWhatAWorkerWouldLeaveOutWithoutAWord) {
  const auto with = [](std::string_view more) {
    return sent(R"({"messages":[{"role":"user","content":"a"}],)" + std::string(more) + "}");
  };
  EXPECT_EQ(with(R"("response_format":{"type":"json_object"})"),
            "response_format: this engine can't be bound to a format (\"response_format\")");
  EXPECT_EQ(with(R"("logprobs":true)"),
            "logprobs: this engine tells no probabilities (\"logprobs\")");
  EXPECT_EQ(with(R"("tools":[{}],"tool_choice":"required")"),
            "tool_choice: this engine can't force a tool call (\"tool_choice\")");
  EXPECT_EQ(with(R"("presence_penalty":0.5)"),
            "presence_penalty: this engine has no such penalty (\"presence_penalty\")");
  EXPECT_EQ(with(R"("temperature":"warm")"), "temperature: temperature must be a number from 0");
  EXPECT_EQ(with(R"("stop":[1])"), "stop: stop must be a text or a list of at most 64 texts");
  EXPECT_NE(with(R"("presence_penalty":0,"logit_bias":{},"logprobs":false)").find("generate"),
            std::string::npos);
}

}  // namespace
}  // namespace werk::engine::worker
