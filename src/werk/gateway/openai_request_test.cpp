#include "werk/gateway/openai_request.hpp"

#include <gtest/gtest.h>

#include "werk/base/json_cursor.hpp"

namespace werk::gateway {
namespace {

constexpr std::string_view kHello = R"([{"role":"user","content":"hi"}])";

std::string with(std::string_view members) {
  return "{" + std::string(members) + R"(,"messages":)" + std::string(kHello) + "}";
}

// "param: message" of the refusal; "ok" if there is none.
std::string refusal(std::string_view body) {
  const auto view = read_chat_request(body);
  if (view) return "ok";
  EXPECT_EQ(view.error().code, ErrorCode::invalid_request) << body;
  EXPECT_EQ(view.error().origin, Origin::client) << body;
  return view.error().param + ": " + view.error().message;
}

std::string refused_message(std::string_view message) {
  return refusal(R"({"messages":[{"role":"user","content":"a"},)" + std::string(message) + "]}");
}

std::string rewritten(std::string_view body, TextParts parts = TextParts::keep) {
  const auto view = read_chat_request(body);
  EXPECT_TRUE(view) << (view ? "" : view.error().message);
  if (!view) return {};
  EngineEdits edits;
  edits.engine_model = "e";
  edits.text_parts = parts;
  const std::string out = rewrite_chat_request(body, *view, edits);
  JsonScanner scanner;
  EXPECT_TRUE(scanner.feed(out)) << out;
  EXPECT_TRUE(scanner.finish()) << out;
  return out;
}

constexpr std::string_view kAdded =
    R"("stream_options":{"include_usage":true},"return_progress":true)";

TEST(ChatRequest, TellsWhatTheGatewayMustKnow) {
  const auto view = read_chat_request(
      R"({"model":"a\/b \ud83d\ude00","stream":true,"stream_options":{"include_usage":true,)"
      R"("x":1},"n":3,"tools":[{}],)"
      R"("tool_choice":"required","max_tokens":5,"max_completion_tokens":7,"return_progress":true,)"
      R"("response_format":{"type":"json_object"},"messages":[{"role":"user","content":[)"
      R"({"type":"text","text":"x"},)"
      R"({"type":"image_url","image_url":{"url":"data:image/png;base64,AA"}},)"
      R"({"type":"input_audio"}]}]})");
  ASSERT_TRUE(view) << view.error().message;
  EXPECT_EQ(view->model, "a/b \xF0\x9F\x98\x80");
  EXPECT_TRUE(view->stream);
  EXPECT_TRUE(view->include_usage);
  EXPECT_TRUE(view->return_progress);
  EXPECT_EQ(view->choices, 3u);
  EXPECT_TRUE(view->has_tools);
  EXPECT_EQ(view->tool_choice, ToolChoice::required);
  EXPECT_EQ(view->max_tokens, 7u);
  EXPECT_TRUE(view->has_response_format);
  EXPECT_TRUE(view->has_images);
  EXPECT_TRUE(view->has_audio);
  EXPECT_FALSE(view->has_remote_media);
  EXPECT_FALSE(view->has_text_lists);
  EXPECT_EQ(view->message_count, 1u);
}

TEST(ChatRequest, NullCountsAsAbsentForEveryMemberThatIsRead) {
  const auto view = read_chat_request(
      with(R"("model":null,"stream":null,"stream_options":null,"return_progress":null,"n":null,)"
           R"("tools":null,)"
           R"("tool_choice":null,"max_tokens":null,"max_completion_tokens":null,)"
           R"("response_format":null,"seed":null)"));
  ASSERT_TRUE(view) << view.error().message;
  EXPECT_FALSE(view->model);
  EXPECT_FALSE(view->stream);
  EXPECT_EQ(view->choices, 1u);
  EXPECT_FALSE(view->has_tools);
  EXPECT_FALSE(view->max_tokens);
  EXPECT_FALSE(view->has_response_format);
  EXPECT_EQ(refusal(with(R"("stream_options":{"include_usage":null})")), "ok");
}

TEST(ChatRequest, BodiesThatAreNoRequestAreRefusedWithTheFault) {
  EXPECT_EQ(refusal(""), ": request body: the text is empty where JSON was expected");
  EXPECT_EQ(refusal("hello"),
            ": request body: not valid JSON: at byte 0 a JSON value was expected");
  EXPECT_EQ(refusal("[]"), ": the request body is an array where a JSON object was expected");
  EXPECT_EQ(refusal("null"), ": the request body is null where a JSON object was expected");
  EXPECT_EQ(refusal("{\"model\":\"\xFF\"}"),
            ": request body: not valid JSON: at byte 10 valid UTF-8 was expected");
  EXPECT_EQ(refusal(std::string(10'000, '[') + std::string(10'000, ']')),
            ": request body: the JSON is nested more than 256 levels deep, at byte 256");
  EXPECT_EQ(refusal("{}"), "messages: the request has no 'messages'");
  EXPECT_EQ(refusal(R"({"messages":[]})"), "messages: 'messages' is empty");
  EXPECT_EQ(refusal(R"({"messages":null})"), "messages: the request has no 'messages'");
  EXPECT_EQ(refusal(R"({"messages":{}})"), "messages: 'messages' must be an array, not an object");
  EXPECT_EQ(refusal(with(R"("model":7)")), "model: 'model' must be a string, not a number");
  EXPECT_EQ(refusal(with(R"("model":"")")), "model: 'model' is empty");
  EXPECT_EQ(refusal(with(R"("model":"a","model":"b")")),
            "model: request body: the member 'model' is given twice");
  EXPECT_EQ(refusal(with(R"("stream":"yes")")),
            "stream: 'stream' must be true or false, not a string");
  EXPECT_EQ(refusal(with(R"("stream_options":[])")),
            "stream_options: 'stream_options' must be an object, not an array");
  EXPECT_EQ(refusal(with(R"("stream_options":{"include_usage":1})")),
            "stream_options.include_usage: 'stream_options.include_usage' must be true or false, "
            "not a number");
  EXPECT_EQ(
      refusal(with(R"("stream_options":{"include_usage":true,"include_usage":false})")),
      "stream_options.include_usage: the member 'stream_options.include_usage' is given twice");
  for (const std::string_view n : {"0", "-1", "1.5", "129", "1e1", "99999999999999999999"}) {
    EXPECT_EQ(refusal(with("\"n\":" + std::string(n))),
              "n: 'n' must be a whole number from 1 to 128");
  }
  EXPECT_EQ(refusal(with(R"("tools":{})")), "tools: 'tools' must be an array, not an object");
  EXPECT_EQ(refusal(with(R"("tool_choice":"always")")).substr(0, 12), "tool_choice:");
  EXPECT_EQ(refusal(with(R"("max_tokens":"5")")),
            "max_tokens: 'max_tokens' must be a number, not a string");
}

TEST(ChatRequest, MessagesAreChecked) {
  EXPECT_EQ(refused_message("7"), "messages[1]: 'messages[1]' must be an object, not a number");
  EXPECT_EQ(refused_message("{}"), "messages[1].role: 'messages[1]' has no role");
  EXPECT_EQ(refused_message(R"({"role":"robot","content":"x"})").substr(0, 55),
            "messages[1].role: 'messages[1].role' is 'robot', which ");
  EXPECT_EQ(refused_message(R"({"role":3})"),
            "messages[1].role: 'messages[1].role' must be a string, not a number");
  EXPECT_EQ(refused_message(R"({"role":"user","role":"tool"})"),
            "messages[1].role: the member 'messages[1].role' is given twice");
  EXPECT_EQ(refused_message(R"({"role":"user","content":7})"),
            "messages[1].content: 'messages[1].content' must be a string, a list of parts or null, "
            "not a number");
  EXPECT_EQ(refused_message(R"({"role":"user","content":["x"]})"),
            "messages[1].content[0]: 'messages[1].content[0]' must be an object, not a string");
  EXPECT_EQ(refused_message(R"({"role":"user","content":[{"type":"smell"}]})").substr(0, 27),
            "messages[1].content[0].type");
  EXPECT_EQ(refused_message(R"({"role":"user","content":[{"type":"text"}]})").substr(0, 27),
            "messages[1].content[0].text");
  for (const std::string_view role :
       {"system", "developer", "user", "assistant", "tool", "function"}) {
    EXPECT_EQ(refused_message(R"({"role":")" + std::string(role) + R"(","content":"x"})"), "ok");
  }
}

TEST(ChatRequest, ContentMayBeNullEmptyOrAbsentWithAndWithoutCalls) {
  for (const std::string_view content :
       {R"("content":null)", R"("content":"")", R"("content":[])", R"("x":1)"}) {
    for (const std::string_view calls :
         {R"("tool_calls":[{"id":"c"}])", R"("tool_calls":null)", R"("y":1)"}) {
      const std::string message =
          R"({"role":"assistant",)" + std::string(content) + "," + std::string(calls) + "}";
      EXPECT_EQ(refused_message(message), "ok") << message;
    }
  }
}

TEST(ChatRequest, MediaThatTheEngineWouldFetchAreSeenInEverySpelling) {
  const auto remote = [](const std::string& part) {
    const auto view =
        read_chat_request(R"({"messages":[{"role":"user","content":[)" + part + "]}]}");
    EXPECT_TRUE(view) << part;
    return view && view->has_remote_media;
  };
  EXPECT_TRUE(remote(R"({"type":"image_url","image_url":{"url":"http://10.0.0.1/x"}})"));
  EXPECT_TRUE(remote(R"({"type":"image_url","image_url":"https://a/x"})"));
  EXPECT_TRUE(remote(R"({"type":"image_url","image_url":{"url":"\u0068ttp:x"}})"));
  EXPECT_TRUE(remote(R"({"type":"image_url","image_url":{"url":"data:,","url":"http://a"}})"));
  EXPECT_TRUE(remote(R"({"type":"image_url","image_url":{"url":"file:///etc/x"}})"));
  EXPECT_TRUE(remote(R"({"type":"input_audio","input_audio":{"url":"http://a"}})"));
  EXPECT_TRUE(remote(R"({"type":"input_audio","input_audio":{"data":"http://a"}})"));
  EXPECT_TRUE(remote(R"({"type":"video_url","video_url":{"url":"http://a"}})"));
  EXPECT_FALSE(remote(R"({"type":"image_url","image_url":{"url":"data:image/png;base64,AA"}})"));
  EXPECT_FALSE(remote(R"({"type":"input_audio","input_audio":{"data":"AAhttp","format":"wav"}})"));
  EXPECT_FALSE(remote(R"({"type":"text","text":"http://a"})"));
}

TEST(ChatRequest, ReadsTheSameInPieces) {
  const std::string body = with(R"("model":"a\u00e9b","n":2,"stream":true,"x":"\ud83d\ude00")");
  for (std::size_t i = 0; i <= body.size(); ++i) {
    ChatRequestReader reader;
    ASSERT_TRUE(reader.feed(body.substr(0, i)));
    ASSERT_TRUE(reader.feed(body.substr(i)));
    const auto view = reader.finish(body);
    ASSERT_TRUE(view);
    EXPECT_EQ(view->model,
              "a\xC3\xA9"
              "b");
    EXPECT_EQ(view->choices, 2u);
  }
}

TEST(ChatRewrite, ChangesOnlyTheClosedListOfMembers) {
  const std::string middle =
      R"( "tools" : [{"zebra":{"mango":1e-7,"apple":9007199254740993,"apple":1.0},)"
      R"("s":"a\/b\u0041"}],"x":1,"x":2 ,)";
  EXPECT_EQ(rewritten("{\"model\":\"client\"," + middle +
                      "\"stream\":false,\"messages\":" + std::string(kHello) + "}"),
            "{\"model\":\"e\"," + middle + "\"stream\":true,\"messages\":" + std::string(kHello) +
                "," + std::string(kAdded) + "}");
}

TEST(ChatRewrite, AddsWhatIsAbsent) {
  EXPECT_EQ(rewritten("{\"messages\":" + std::string(kHello) + " }\n"),
            "{\"messages\":" + std::string(kHello) + R"(,"model":"e","stream":true,)" +
                std::string(kAdded) + " }\n");
}

TEST(ChatRewrite, EqualCallsGiveEqualBytes) {
  const std::string body = with(R"("seed":null,"model":"q","top_p":0.10)");
  EXPECT_EQ(rewritten(body), rewritten(body));
}

TEST(ChatRewrite, KeepsOtherStreamOptions) {
  EXPECT_EQ(rewritten(with(R"("model":"a","stream":true,"return_progress":false,)"
                           R"("stream_options":{"x":[1],"include_usage":false,"y":null})")),
            with(R"("model":"e","stream":true,"return_progress":true,"stream_options":{"x":[1],)"
                 R"("include_usage":true})"));
  EXPECT_EQ(
      rewritten(with(R"("model":"a","stream":true,"return_progress":false,"stream_options":{})")),
      with(R"("model":"e","stream":true,"return_progress":true,)"
           R"("stream_options":{"include_usage":true})"));
}

TEST(ChatRewrite, RemovesNullsAndWhatWerkDoesNotHandOut) {
  EXPECT_EQ(
      rewritten(with(R"("seed":null,"model":"a","stop":null,"id_slot":3,"n_cmpl":9,"stream":null,)"
                     R"("user":null)")),
      R"({"model":"e","stream":true,"messages":)" + std::string(kHello) + "," +
          std::string(kAdded) + "}");
}

TEST(ChatRewrite, RemovesNullsOfMessagesAndGivesContentWhereItIsMissing) {
  const auto messages = [](std::string_view list) {
    const std::string out = rewritten("{\"messages\":" + std::string(list) + "}");
    return std::string(find_member(out, "messages").value_or(""));
  };
  EXPECT_EQ(messages(R"([{"role":"user","name":null,"content":null}])"),
            R"([{"role":"user","content":null}])");
  EXPECT_EQ(messages(R"([{"role":"user"}])"), R"([{"role":"user","content":null}])");
  EXPECT_EQ(messages(R"([{"role":"assistant","tool_calls":null,"refusal":null}])"),
            R"([{"role":"assistant","content":null}])");
  EXPECT_EQ(
      messages(
          R"([{"role":"assistant","tool_calls":[{"id":null,"type":"function","x":{"y":null}}]}])"),
      R"([{"role":"assistant","tool_calls":[{"type":"function","x":{"y":null}}]}])");
  EXPECT_EQ(
      messages(R"([{"role":"user","content":"a"},{"role":"user","content":[{"type":"text",)"
               R"("text":"b"}]}])"),
      R"([{"role":"user","content":"a"},{"role":"user","content":[{"type":"text","text":"b"}]}])");
}

TEST(ChatRewrite, JoinsTextPartsWhereTheEngineWantsStrings) {
  const std::string image =
      R"({"role":"user","content":[{"type":"text","text":"a"},{"type":"image_url"}]})";
  const std::string body =
      R"({"messages":[{"role":"user","content":[{"type":"text","text":"a\/\u00e9"},)"
      R"({"text":"\"b","type":"text"}]},{"role":"user","content":[]},)" +
      image + "]}";
  const std::string out = rewritten(body, TextParts::join);
  EXPECT_EQ(
      std::string(*find_member(out, "messages")),
      R"([{"role":"user","content":"a\/\u00e9\n\"b"},{"role":"user","content":[]},)" + image + "]");
  const std::string kept = rewritten(body);
  EXPECT_EQ(*find_member(kept, "messages"), *find_member(body, "messages"));
}

TEST(ChatRewrite, ATextPartGivesTheSameBytesAsTheString) {
  for (const std::string role : {"system", "developer", "user", "assistant", "tool"}) {
    const std::string text = "\"" + role + R"( says \ud83d\ude00 \n")";
    const auto body = [&](const std::string& content) {
      return R"({"messages":[{"role":")" + role + R"(","content":)" + content + "}]}";
    };
    EXPECT_EQ(rewritten(body(R"([{"type":"text","text":)" + text + "}]"), TextParts::join),
              rewritten(body(text), TextParts::join));
  }
}

TEST(ChatRewrite, AddsDefaultsOnlyWhereTheRequestHasNone) {
  EngineEdits edits;
  edits.engine_model = "e";
  edits.defaults = {{"temperature", "0.5"}, {"top_p", "0.9"}, {"seed", "7"}};
  const std::string body = with(R"("model":"a","temperature":1.0,"seed":null,"stream":true)");
  const std::string out = rewrite_chat_request(body, *read_chat_request(body), edits);
  EXPECT_EQ(out, R"({"model":"e","temperature":1.0,"seed":7,"stream":true,"messages":)" +
                     std::string(kHello) + "," + std::string(kAdded) + R"(,"top_p":0.9})");
}

TEST(ChatRequest, ANamedToolIsSentAloneAndRequiredWhereTheEngineKnowsNoNames) {
  const std::string body =
      R"({"model":"m","messages":[{"role":"user","content":"hi"}],"tools":[)"
      R"({"type":"function","function":{"name":"a"}},{"type":"function","function":{"name":"b"}}],)"
      R"("tool_choice":{"type":"function","function":{"name":"b"}}})";
  const auto view = read_chat_request(body);
  ASSERT_TRUE(view);
  EngineEdits edits;
  edits.engine_model = "e";
  EXPECT_NE(rewrite_chat_request(body, *view, edits).find(R"("name":"a")"), std::string::npos);
  edits.named_tool = NamedTool::as_only_tool;
  const std::string rewritten = rewrite_chat_request(body, *view, edits);
  EXPECT_NE(rewritten.find(R"("tools":[{"type":"function","function":{"name":"b"}}])"),
            std::string::npos)
      << rewritten;
  EXPECT_NE(rewritten.find(R"("tool_choice":"required")"), std::string::npos) << rewritten;
}

TEST(ChatRequest, ANamedToolThatIsNotOfferedIsRefused) {
  const auto view =
      read_chat_request(R"({"model":"m","messages":[{"role":"user","content":"hi"}],"tools":[],)"
                        R"("tool_choice":{"type":"function","function":{"name":"b"}}})");
  ASSERT_FALSE(view);
  EXPECT_EQ(view.error().param, "tool_choice");
}

}  // namespace
}  // namespace werk::gateway
