#include "werk/gateway/openai_render.hpp"

#include <gtest/gtest.h>

#include "werk/base/json_cursor.hpp"
#include "werk/gateway/openai_request.hpp"

namespace werk::gateway {
namespace {

using chat::Message;
using chat::Role;
using chat::Text;

// Renders and lets the reader of the OpenAI dialect judge it.
std::string render(const chat::Request& request, OpenAiRenderOptions options = {}) {
  if (options.engine_model.empty()) options.engine_model = "e";
  std::string body = render_openai_chat(request, options);
  const auto view = read_chat_request(body);
  EXPECT_TRUE(view) << body << (view ? "" : view.error().message);
  EXPECT_EQ(body, render_openai_chat(request, options));
  return body;
}

std::string member(const std::string& body, std::string_view name) {
  return std::string(find_member(body, name).value_or("absent"));
}

chat::Request asking(std::vector<Message> messages) {
  chat::Request request;
  request.messages = std::move(messages);
  return request;
}

const Message kHi{Role::user, {Text{"hi"}}};

TEST(OpenAiRender, TheWholeBody) {
  chat::Request request = asking({kHi});
  request.max_tokens = 9;
  request.temperature = 0.7;
  request.top_p = 1;
  request.top_k = 40;
  request.stop_sequences = {"a\n", "b"};
  request.user = "u";
  request.tools = {{"f", "d", R"({"z":1.0,  "a":2})"}, {"g", "", ""}};
  request.parallel_tool_calls = false;
  request.response_schema = R"({"b":1, "a":2})";
  EXPECT_EQ(render(request),
            R"({"model":"e","messages":[{"role":"user","content":"hi"}],"tools":[)"
            R"({"type":"function","function":{"name":"f","description":"d",)"
            R"("parameters":{"z":1.0,  "a":2}}},{"type":"function","function":{"name":"g"}}],)"
            R"("parallel_tool_calls":false,"max_tokens":9,"temperature":0.7,"top_p":1,"top_k":40,)"
            R"("stop":["a\n","b"],"response_format":{"type":"json_schema","json_schema":)"
            R"({"name":"answer","schema":{"b":1, "a":2}}},"user":"u","stream":true,)"
            R"("stream_options":{"include_usage":true},"return_progress":true})");
}

TEST(OpenAiRender, TextsOfOneTurnAreOneString) {
  const std::string body =
      render(asking({{Role::system, {Text{"a"}, Text{"b"}}},
                     {Role::user, {Text{"c\"\n"}, Text{"é"}}},
                     {Role::assistant, {chat::Reasoning{"r"}, Text{"d"}, Text{"e"}}},
                     kHi}));
  EXPECT_EQ(member(body, "messages"),
            R"([{"role":"system","content":"a\n\nb"},{"role":"user","content":"c\"\n\né"},)"
            R"({"role":"assistant","content":"de"},{"role":"user","content":"hi"}])");
}

TEST(OpenAiRender, EarlierReasoningIsSentOnlyWhereTheTemplateUsesIt) {
  const chat::Request request =
      asking({kHi, {Role::assistant, {chat::Reasoning{"r"}, Text{"d"}}}, kHi});
  EXPECT_EQ(member(render(request), "messages").find("\"r\""), std::string::npos);
  const std::string body = render(request, {.earlier_reasoning = EarlierReasoning::send});
  EXPECT_NE(body.find(R"({"role":"assistant","reasoning_content":"r","content":"d"})"),
            std::string::npos);
}

TEST(OpenAiRender, CallsAndResults) {
  const std::string body = render(asking(
      {kHi,
       {Role::assistant, {chat::ToolCall{"i", "f", R"({"a": 1})"}, chat::ToolCall{"j", "g", "{}"}}},
       {Role::tool,
        {chat::ToolResult{"i", {Text{"x"}, Text{"y"}}, false},
         chat::ToolResult{"j", {Text{"bad"}}, true}}},
       {Role::user, {Text{"go on"}}}}));
  EXPECT_EQ(member(body, "messages"),
            R"([{"role":"user","content":"hi"},{"role":"assistant","content":null,"tool_calls":[)"
            R"({"id":"i","type":"function","function":{"name":"f","arguments":"{\"a\": 1}"}},)"
            R"({"id":"j","type":"function","function":{"name":"g","arguments":"{}"}}]},)"
            R"({"role":"tool","tool_call_id":"i","content":"x\ny"},)"
            R"({"role":"tool","tool_call_id":"j","content":"Error: bad"},)"
            R"({"role":"user","content":"go on"}])");
}

TEST(OpenAiRender, ImagesAreDataUrlsAndThoseOfResultsComeBehindThem) {
  const chat::Image image{"image/png", "AAAA"};
  const chat::Image seen{"image/gif", "BBBB"};
  const auto url = [](std::string_view data) {
    return R"({"type":"image_url","image_url":{"url":"data:)" + std::string(data) + R"("}})";
  };
  EXPECT_EQ(member(render(asking({{Role::user, {Text{"see"}, image}}})), "messages"),
            R"([{"role":"user","content":[{"type":"text","text":"see"},)" +
                url("image/png;base64,AAAA") + "]}]");
  const Message result{Role::tool, {chat::ToolResult{"i", {Text{"x"}, seen}, false}}};
  const std::string told = R"([{"role":"tool","tool_call_id":"i","content":"x"},)"
                           R"({"role":"user","content":[)" +
                           url("image/gif;base64,BBBB");
  EXPECT_EQ(member(render(asking({result})), "messages"), told + "]}]");
  EXPECT_EQ(member(render(asking({result, {Role::user, {image, Text{"now"}}}})), "messages"),
            told + "," + url("image/png;base64,AAAA") + R"(,{"type":"text","text":"now"}]}])");
}

TEST(OpenAiRender, LaterSystemMessagesStayOrAreToldByTheUser) {
  const chat::Request request = asking(
      {{Role::system, {Text{"s"}}}, kHi, {Role::system, {Text{"t"}}}, {Role::user, {Text{"ho"}}}});
  EXPECT_EQ(member(render(request), "messages"),
            R"([{"role":"system","content":"s"},{"role":"user","content":"hi"},)"
            R"({"role":"system","content":"t"},{"role":"user","content":"ho"}])");
  EXPECT_EQ(member(render(request, {.system_place = SystemPlace::only_first}), "messages"),
            R"([{"role":"system","content":"s"},{"role":"user","content":"hi\nt\nho"}])");
}

TEST(OpenAiRender, ToolChoice) {
  chat::Request request = asking({kHi});
  request.tools = {{"f", "", "{}"}, {"g", "", "{}"}};
  const auto choice = [&](chat::ToolUse use, NamedTool named = NamedTool::as_object) {
    request.tool_choice = {use, "g"};
    return member(render(request, {.named_tool = named}), "tool_choice");
  };
  EXPECT_EQ(choice(chat::ToolUse::unset), "absent");
  EXPECT_EQ(choice(chat::ToolUse::automatic), "\"auto\"");
  EXPECT_EQ(choice(chat::ToolUse::required), "\"required\"");
  EXPECT_EQ(choice(chat::ToolUse::none), "\"none\"");
  EXPECT_EQ(choice(chat::ToolUse::named), R"({"type":"function","function":{"name":"g"}})");
  EXPECT_EQ(choice(chat::ToolUse::named, NamedTool::as_only_tool), "\"required\"");
  const std::string body = render(request, {.named_tool = NamedTool::as_only_tool});
  EXPECT_EQ(body.find(R"("name":"f")"), std::string::npos);
  EXPECT_NE(body.find(R"("name":"g")"), std::string::npos);
}

TEST(OpenAiRender, Reasoning) {
  using chat::ReasoningSwitch;
  chat::Request request = asking({kHi});
  request.effort = chat::Effort::medium;
  request.reasoning_budget_tokens = 100;
  const auto with = [&](ReasoningSwitch reasoning, std::string budget = "") {
    request.reasoning = reasoning;
    return render(request, {.reasoning_budget_member = std::move(budget)});
  };
  EXPECT_EQ(member(with(ReasoningSwitch::on), "chat_template_kwargs"),
            R"({"enable_thinking":true})");
  const std::string off = with(ReasoningSwitch::off, "budget");
  EXPECT_EQ(member(off, "chat_template_kwargs"), R"({"enable_thinking":false})");
  EXPECT_EQ(member(off, "reasoning_effort"), "absent");
  EXPECT_EQ(member(off, "budget"), "absent");
  EXPECT_EQ(member(with(ReasoningSwitch::adaptive), "chat_template_kwargs"), "absent");
  const std::string on = with(ReasoningSwitch::on, "budget");
  EXPECT_EQ(member(on, "reasoning_effort"), "\"medium\"");
  EXPECT_EQ(member(on, "budget"), "100");
}

TEST(OpenAiRender, TheEngineIsAskedForTheStopSequenceOnlyWhereItMatters) {
  const OpenAiRenderOptions llama{.stop_report = StopReport::llama_verbose};
  chat::Request request = asking({kHi});
  EXPECT_EQ(member(render(request, llama), "verbose"), "absent");
  request.stop_sequences = {"x"};
  EXPECT_EQ(member(render(request, llama), "verbose"), "true");
  EXPECT_EQ(member(render(request, llama), "response_fields"), R"(["stopping_word"])");
  EXPECT_EQ(member(render(request), "verbose"), "absent");
}

TEST(OpenAiRender, DefaultsFillOnlyWhatTheRequestLeavesOpen) {
  chat::Request request = asking({kHi});
  request.top_k = 1;
  const std::string body = render(request, {.defaults = {{"top_k", "2"}, {"min_p", "0.1"}}});
  EXPECT_EQ(member(body, "top_k"), "1");
  EXPECT_EQ(member(body, "min_p"), "0.1");
}

TEST(OpenAiRender, AGrowingConversationKeepsTheBytesOfItsBeginning) {
  std::vector<Message> messages = {{Role::system, {Text{"s"}}}, kHi};
  std::string before = render(asking(messages));
  for (int turn = 0; turn < 4; ++turn) {
    messages.push_back({Role::assistant, {Text{"a" + std::to_string(turn)}}});
    messages.push_back(kHi);
    const std::string now = render(asking(messages));
    const std::string kept = before.substr(0, before.find("]") - 1);
    EXPECT_TRUE(now.starts_with(kept)) << now;
    before = now;
  }
}

}  // namespace
}  // namespace werk::gateway
