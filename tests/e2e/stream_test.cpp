// What an engine sends against what a client gets: framing, usage, failures in the middle, tool
// calls, reasoning, and memory. One node and one engine for most tests: the engine holds each call
// until the test has told it what to answer.
#include <gtest/gtest.h>

#include <fstream>
#include <memory>
#include <set>

#include "tests/e2e/chat_answer.hpp"
#include "tests/e2e/test_node.hpp"

namespace werk::test {
namespace {

namespace json = boost::json;

constexpr std::string_view kStreamed = R"("stream":true)";

json::object capable_engine() {
  return {{"reply", {{"hold", true}}},
          {"props",
           {{"chat_template_caps", {{"supports_tools", true}, {"supports_tool_calls", true}}}}}};
}

class Stream : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    shared_ = std::make_unique<TestNode>(TestNode::Settings{.engine = capable_engine()});
  }
  static void TearDownTestSuite() { shared_.reset(); }

  TestNode& node() { return *shared_; }
  ChatAnswer streamed(const json::object& reply, std::string_view more = kStreamed) {
    HttpCall call = node().scripted("a", more, reply);
    EXPECT_EQ(call.status(), 200) << call.whole_body();
    EXPECT_EQ(call.header("Content-Type"), "text/event-stream; charset=utf-8");
    ChatAnswer answer = read_stream(call.whole_body());
    EXPECT_EQ(call.end(), answer.error.empty() ? BodyEnd::proper : BodyEnd::cut);
    EXPECT_EQ(answer.done, answer.error.empty());
    EXPECT_EQ(answer.events_after_end, 0u);
    return answer;
  }
  ChatAnswer whole(const json::object& reply, int status = 200) {
    HttpCall call = node().scripted("a", {}, reply);
    EXPECT_EQ(call.status(), status) << call.whole_body();
    return read_whole(call.whole_body());
  }
  // Both ways must tell the same.
  ChatAnswer both(const json::object& reply) {
    ChatAnswer answer = streamed(reply);
    const ChatAnswer folded = whole(reply);
    EXPECT_EQ(folded.content, answer.content);
    EXPECT_EQ(folded.reasoning, answer.reasoning);
    EXPECT_EQ(folded.finish_reason, answer.finish_reason);
    EXPECT_EQ(folded.calls, answer.calls);
    return answer;
  }

 private:
  static inline std::unique_ptr<TestNode> shared_;
};

// Data of events as an engine sends them.
std::string delta(std::string_view members) {
  return R"({"choices":[{"finish_reason":null,"index":0,"delta":)" + std::string(members) +
         R"(}],"created":1,"id":"x","model":"engine","object":"chat.completion.chunk"})";
}
std::string finish(std::string_view reason) {
  return R"({"choices":[{"finish_reason":")" + std::string(reason) +
         R"(","index":0,"delta":{}}],"created":1,"id":"x","model":"engine",)"
         R"("object":"chat.completion.chunk"})";
}
json::object events(const std::vector<std::string>& data) {
  json::array list(data.begin(), data.end());
  return {{"events", std::move(list)}};
}

// ---- framing

const std::string kText = "日本語, Grüße, 👩‍🚀🇯🇵 — \U0001F600\"\\\n ende";

TEST_F(Stream, CharactersCutAtEverySegmentArriveByteForByte) {
  const json::object reply{{"content", {kText, "漢", "字🙂"}}, {"segment_bytes", 1}};
  EXPECT_EQ(both(reply).content, kText + "漢字🙂");
}

TEST_F(Stream, EscapedSurrogatePairsCutAtEverySegmentArriveWhole) {
  json::object reply =
      events({delta(R"({"content":"\ud83d\ude00 \u65e5"})"), finish("stop"), "[DONE]"});
  reply["segment_bytes"] = 1;
  EXPECT_EQ(both(reply).content, "\U0001F600 日");
}

TEST_F(Stream, ToolArgumentsCutAtEverySegmentArriveByteForByte) {
  const json::object reply{{"tool_calls",
                            {{{"id", "call_1"},
                              {"name", "say"},
                              {"arguments", {"{\"text\":\"日本", "語 👩‍🚀\"}"}}}}},
                           {"segment_bytes", 1}};
  const ChatAnswer answer = both(reply);
  EXPECT_EQ(answer.calls.at(0).arguments, "{\"text\":\"日本語 👩‍🚀\"}");
  EXPECT_EQ(answer.finish_reason, "tool_calls");
}

TEST_F(Stream, EveryLineEndAndCommentsOfAnEngineAreUnderstood) {
  for (const char* line_end : {"lf", "crlf", "cr"}) {
    for (const bool comments : {false, true}) {
      SCOPED_TRACE(line_end);
      const ChatAnswer answer =
          streamed({{"line_end", line_end}, {"comments", comments}, {"segment_bytes", 7}});
      EXPECT_EQ(answer.content, "tok0 tok1 tok2 tok3 tok4 tok5 tok6 tok7 ");
    }
  }
}

TEST_F(Stream, MixedLineEndsDataOfSeveralLinesAndCommentsInsideAreUnderstood) {
  const std::string raw =
      "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n"
      ": hello\n\n"
      "data:{\"choices\":[{\"index\":0,\"finish_reason\":null,\n: inside\n"
      "data: \"delta\":{\"content\":\"one \"}}]}\r\n\r\n"
      "event: message\rid: 7\rdata: " +
      delta(R"({"content":"two"})") + "\r\r:\n\nretry: 5\n\ndata: " + finish("stop") +
      "\n\ndata:[DONE]\r\n\r\n";
  const ChatAnswer answer = both({{"raw", raw}});
  EXPECT_EQ(answer.content, "one two");
  EXPECT_EQ(answer.finish_reason, "stop");
}

// ---- usage

TEST_F(Stream, UsageComesOnlyWhenAskedForOnceAndLast) {
  EXPECT_TRUE(streamed({}).usages.empty());
  EXPECT_TRUE(
      streamed({}, R"("stream":true,"stream_options":{"include_usage":false})").usages.empty());
  const ChatAnswer asked = streamed({}, R"("stream":true,"stream_options":{"include_usage":true})");
  ASSERT_EQ(asked.usages.size(), 1u);
  EXPECT_EQ(asked.usages[0].at("completion_tokens").to_number<int>(), 8);
  EXPECT_EQ(asked.usages[0].at("prompt_tokens").to_number<int>(), 32);
  const json::object& last = asked.chunks.back();
  EXPECT_TRUE(last.contains("usage"));
  EXPECT_TRUE(last.at("choices").as_array().empty());
  EXPECT_EQ(whole({}).usages.size(), 1u);
}

TEST_F(Stream, AnEngineThatNeverTellsUsageGetsNoneInvented) {
  const json::object reply = events({delta(R"({"content":"x"})"), finish("stop"), "[DONE]"});
  EXPECT_TRUE(
      streamed(reply, R"("stream":true,"stream_options":{"include_usage":true})").usages.empty());
}

TEST_F(Stream, ProgressThatTheClientDidNotAskForIsRemovedAndTheFirstEventCarriesTheRole) {
  const ChatAnswer answer = streamed({{"progress_events", 5}});
  for (const json::object& chunk : answer.chunks) EXPECT_FALSE(chunk.contains("prompt_progress"));
  const json::value& first = answer.chunks.at(0).at("choices").at(0).at("delta");
  EXPECT_EQ(first.at("role").as_string(), "assistant");
}

TEST_F(Stream, TheModelIsEchoedAsTheClientWroteIt) {
  for (const json::object& chunk : streamed({}).chunks)
    EXPECT_EQ(chunk.at("model").as_string(), "a");
  EXPECT_EQ(whole({}).chunks.at(0).at("model").as_string(), "a");
}

// ---- failures

class Failure : public Stream {
 protected:
  static json::object dies(std::uint64_t after, std::string_view how) {
    return {{"tokens", 20}, {"die", {{"after", after}, {"how", how}}}};
  }
};

// Two progress events and the role come first.
constexpr std::uint64_t kAfterFiveTokens = 8;

TEST_F(Failure, TokensSoFarArriveThenAnErrorAndNeverAnInventedEnd) {
  for (const char* how :
       {"exit", "kill", "reset", "close", "end", "error", "garbage", "garbage_http"}) {
    SCOPED_TRACE(how);
    const ChatAnswer answer = streamed(dies(kAfterFiveTokens, how));
    EXPECT_EQ(answer.content, "tok0 tok1 tok2 tok3 tok4 ");
    EXPECT_EQ(error_text(answer, "code"), "engine_failed");
    EXPECT_EQ(error_text(answer, "origin"), "engine");
    EXPECT_EQ(answer.finish_reason, "");
    EXPECT_TRUE(answer.usages.empty());
  }
}

TEST_F(Failure, AWholeAnswerThatCouldNotBeFinishedIsAnError) {
  for (const char* how :
       {"exit", "kill", "reset", "close", "end", "error", "garbage", "garbage_http"}) {
    SCOPED_TRACE(how);
    const ChatAnswer answer = whole(dies(kAfterFiveTokens, how), 502);
    EXPECT_EQ(error_text(answer, "code"), "engine_failed");
    EXPECT_EQ(error_text(answer, "origin"), "engine");
    EXPECT_FALSE(error_text(answer, "message").empty());
  }
}

TEST_F(Failure, BeforeTheFirstByteItIsAPlainHttpError) {
  const std::vector<json::object> replies = {
      {{"status", 500}, {"error", {{"message", "boom"}, {"type", "server_error"}}}},
      {{"status", 503}, {"error", {{"message", "boom"}}}},
      dies(0, "garbage_http"),
      dies(0, "kill"),
      {{"raw", "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n"}},
      {{"raw", "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 6\r\n\r\n<html>"}},
      {{"raw", "HTTP/1.1 502 Bad\r\nContent-Length: 12\r\n\r\n<html>proxy<"}},
      {{"raw", std::string("\0\1\2", 3)}},
  };
  for (const json::object& reply : replies) {
    SCOPED_TRACE(json::serialize(reply));
    HttpCall call = node().scripted("a", kStreamed, reply);
    EXPECT_EQ(call.status(), 502) << call.whole_body();
    EXPECT_EQ(error_text(read_whole(call.whole_body()), "code"), "engine_failed");
    EXPECT_EQ(call.end(), BodyEnd::proper);
  }
  EXPECT_EQ(error_text(whole(replies.front(), 502), "code"), "engine_failed");
}

TEST_F(Failure, AnErrorThatIsTheClientsOwnKeepsItsStatusAndReason) {
  HttpCall call = node().scripted("a", kStreamed,
                                  {{"status", 400},
                                   {"error",
                                    {{"type", "exceed_context_size_error"},
                                     {"message", "too long"},
                                     {"n_prompt_tokens", 9000},
                                     {"n_ctx", 4096}}}});
  EXPECT_EQ(call.status(), 400);
  EXPECT_EQ(error_text(read_whole(call.whole_body()), "code"), "context_length_exceeded");
  EXPECT_NE(call.whole_body().find("9000"), std::string::npos);
}

TEST_F(Failure, ALineWithoutAnEndIsCutOffAtTheLimitOfAnEvent) {
  const ChatAnswer answer = streamed(dies(3, "endless"));
  EXPECT_EQ(answer.content, "");
  EXPECT_EQ(error_text(answer, "code"), "engine_failed");
  EXPECT_EQ(streamed({}).finish_reason, "stop") << "the engine goes on";
}

TEST_F(Failure, AnEventOfFourMegabytesPassesWhole) {
  const std::string text(std::size_t{4} << 20, 'x');
  EXPECT_EQ(streamed({{"content", {text}}}).content, text);
}

// ---- tool calls, reasons, reasoning

std::string call_delta(std::string_view members) {
  return delta(R"({"tool_calls":[)" + std::string(members) + "]}");
}

class ToolCalls : public Stream {
 protected:
  void expect_two_calls(std::vector<std::string> deltas) {
    deltas.push_back(finish("tool_calls"));
    deltas.emplace_back("[DONE]");
    const ChatAnswer answer = streamed(events(deltas));
    ASSERT_EQ(answer.calls.size(), 2u);
    EXPECT_EQ(answer.calls.at(0).name, "f");
    EXPECT_EQ(answer.calls.at(0).arguments, R"({"a":1})");
    EXPECT_EQ(answer.calls.at(1).name, "g");
    EXPECT_EQ(answer.calls.at(1).arguments, R"({"b":2})");
    EXPECT_FALSE(answer.calls.at(0).id.empty());
    EXPECT_FALSE(answer.calls.at(1).id.empty());
    EXPECT_NE(answer.calls.at(0).id, answer.calls.at(1).id);
    // The first fragment of each call names its id.
    std::set<std::uint64_t> seen;
    for (const json::object& chunk : answer.chunks) {
      const json::value& part = chunk.at("choices").at(0).at("delta");
      const json::value* list = part.as_object().if_contains("tool_calls");
      if (list == nullptr) continue;
      for (const json::value& fragment : list->as_array()) {
        const bool first = seen.insert(fragment.at("index").to_number<std::uint64_t>()).second;
        EXPECT_TRUE(!first || fragment.as_object().contains("id"));
      }
    }
    const ChatAnswer folded = whole(events(deltas));
    ASSERT_EQ(folded.calls.size(), 2u);
    EXPECT_EQ(folded.calls.at(1).arguments, R"({"b":2})");
  }
};

TEST_F(ToolCalls, WithoutAnIndexAreToldApartByTheirIds) {
  expect_two_calls(
      {call_delta(R"({"id":"c1","type":"function","function":{"name":"f","arguments":""}})"),
       call_delta(R"({"id":"c1","function":{"arguments":"{\"a\":1}"}})"),
       call_delta(R"({"id":"c2","type":"function","function":{"name":"g","arguments":""}})"),
       call_delta(R"({"id":"c2","function":{"arguments":"{\"b\":2}"}})")});
}

TEST_F(ToolCalls, WithIndexZeroThroughoutAreToldApartByTheirIds) {
  expect_two_calls(
      {call_delta(R"({"index":0,"id":"c1","function":{"name":"f","arguments":"{\"a\""}})"),
       call_delta(R"({"index":0,"function":{"arguments":":1}"}})"),
       call_delta(R"({"index":0,"id":"c2","function":{"name":"g","arguments":"{\"b\""}})"),
       call_delta(R"({"index":0,"function":{"arguments":":2}"}})")});
}

TEST_F(ToolCalls, WithoutIdsGetSome) {
  expect_two_calls({call_delta(R"({"index":0,"function":{"name":"f","arguments":"{\"a\":1}"}})"),
                    call_delta(R"({"index":1,"function":{"name":"g","arguments":""}})"),
                    call_delta(R"({"index":1,"function":{"arguments":"{\"b\":2}"}})")});
}

TEST_F(ToolCalls, ThatAreInterleavedStayApart) {
  expect_two_calls({call_delta(R"({"index":0,"id":"c1","function":{"name":"f","arguments":""}})"),
                    call_delta(R"({"index":1,"id":"c2","function":{"name":"g","arguments":""}})"),
                    call_delta(R"({"index":0,"function":{"arguments":"{\"a\""}})"),
                    call_delta(R"({"index":1,"function":{"arguments":"{\"b\""}})"),
                    call_delta(R"({"index":0,"function":{"arguments":":1}"}},)"
                               R"({"index":1,"function":{"arguments":":2}"}})")});
}

TEST_F(ToolCalls, TheFinishReasonFollowsWhatWasReallySent) {
  const std::string call =
      call_delta(R"({"index":0,"id":"c1","function":{"name":"f","arguments":"{}"}})");
  const std::string text = delta(R"({"content":"x"})");
  EXPECT_EQ(both(events({call, finish("stop"), "[DONE]"})).finish_reason, "tool_calls");
  EXPECT_EQ(both(events({text, finish("tool_calls"), "[DONE]"})).finish_reason, "stop");
  EXPECT_EQ(both(events({call, finish("length"), "[DONE]"})).finish_reason, "length");
}

TEST_F(Stream, ReasoningHasOneNameWhateverTheEngineCallsIt) {
  for (const char* field : {"reasoning", "reasoning_content"}) {
    SCOPED_TRACE(field);
    const ChatAnswer answer =
        both({{"reasoning", {"hm ", "so"}}, {"reasoning_field", field}, {"content", {"yes"}}});
    EXPECT_EQ(answer.reasoning, "hm so");
    EXPECT_EQ(answer.content, "yes");
  }
}

TEST_F(Stream, ReasoningThatComesAgainAfterAToolCallIsKept) {
  const ChatAnswer answer =
      both(events({delta(R"({"reasoning":"one "})"), delta(R"({"content":"text"})"),
                   call_delta(R"({"index":0,"id":"c1","function":{"name":"f","arguments":"{}"}})"),
                   delta(R"({"reasoning":"two"})"), finish("tool_calls"), "[DONE]"}));
  EXPECT_EQ(answer.reasoning, "one two");
  EXPECT_EQ(answer.content, "text");
}

// ---- requests

class Request : public Stream {
 protected:
  // What the engine was sent for this body.
  std::string at_engine(const std::string& body) {
    HttpCall call = test::chat(node().port(), body);
    EngineEvent generation = node().generation();
    node().reply(generation, {});
    EXPECT_EQ(call.status(), 200) << call.whole_body();
    alias_ = parsed_model(generation.text("body"));
    return generation.text("body");
  }
  static std::string parsed_model(const std::string& body) {
    return std::string(json::parse(body).at("model").as_string());
  }
  std::string alias_;
};

TEST_F(Request, ReachesTheEngineByteForByteApartFromTheEditedMembers) {
  const std::string tail =
      R"("messages" : [ {"role":"user","content":"a\/b \u00e9 é"} ],"stream":true,)"
      R"("tools":[{"type":"function","function":{"name":"f","parameters":{"zebra":1,"apple":)"
      R"({"b":1.0,)"
      R"("a":9007199254740993},"mango":1e-7,"mango":-0.0}}}], "unknown":[1e400,"x"],"seed":)"
      R"(12345678901234567890})";
  const std::string body = R"({ "model" : "a", )" + tail;
  const std::string seen = at_engine(body);
  const std::string expected = R"({ "model" : ")" + alias_ + R"(", )" + tail;
  EXPECT_EQ(seen.substr(0, expected.size() - 1), expected.substr(0, expected.size() - 1));
  json::object added = json::parse("{" + seen.substr(expected.size())).as_object();
  EXPECT_TRUE(added.erase("stream_options"));
  EXPECT_TRUE(added.erase("return_progress"));
  EXPECT_TRUE(added.empty()) << json::serialize(added);
  EXPECT_EQ(at_engine(body), seen) << "equal calls give equal bytes";
}

TEST_F(Request, NullMembersAndAbsentContentAreAsIfTheyWereNotThere) {
  const std::string nulls =
      R"(,"stream":null,"stream_options":null,"n":null,"tools":null,"tool_choice":null,)"
      R"("max_tokens":null,"temperature":null,"stop":null,"seed":null,"logit_bias":null,)"
      R"("response_format":null,"user":null,"return_progress":null})";
  const std::string messages = R"({"model":"a","messages":[{"role":"user","content":"x"}])";
  EXPECT_EQ(json::parse(at_engine(messages + nulls)), json::parse(at_engine(messages + "}")));
  const std::string call =
      R"("tool_calls":[{"id":"c","type":"function","function":{"name":"f","arguments":"{}"}}])";
  for (const std::string& content :
       {std::string(R"("content":null)"), std::string(R"("content":"")"),
        R"("content":null,)" + call, R"("content":"",)" + call, call}) {
    at_engine(R"({"model":"a","messages":[{"role":"user","content":"x"},{"role":"assistant",)" +
              content + R"(},{"role":"user","content":"y"}]})");
  }
}

TEST_F(Request, ContentInPartsReachesTheEngineAsItCame) {
  for (const char* role : {"system", "developer", "user", "assistant"}) {
    const std::string parts = R"([{"type":"text","text":"one"},{"type":"text","text":"two"}])";
    const std::string message =
        R"({"role":")" + std::string(role) + R"(","content":)" + parts + "}";
    const std::string seen = at_engine(R"({"model":"a","messages":[)" + message + "]}");
    EXPECT_NE(seen.find(message), std::string::npos) << seen;
  }
}

// ---- memory

TEST(SlowReaders, PauseTheirEngineAndHoldUpNobody) {
  // More than the kernel's own buffers take.
  constexpr std::size_t kPieces = 96;
  constexpr std::size_t kPieceBytes = 65536;
  json::array content;
  for (std::size_t i = 0; i < kPieces; ++i) content.emplace_back(std::string(kPieceBytes, 'y'));
  TestNode node({.engine = {{"reply", {{"content", content}}}}, .arguments = {"--parallel", "4"}});
  std::vector<HttpCall> stalled;
  std::vector<EngineEvent> generations;
  for (int i = 0; i < 3; ++i) {
    stalled.push_back(node.chat("a", kStreamed));
    generations.push_back(node.generation());
    EXPECT_EQ(stalled.back().status(), 200);
  }
  // One that reads gets as much as each of the others would, had they been read for.
  HttpCall live = node.chat("a", kStreamed);
  const EngineEvent generation = node.generation();
  EXPECT_EQ(read_stream(live.whole_body()).content.size(), kPieces * kPieceBytes);
  node.engines().expect("answered", [&](const EngineEvent& event) {
    return event.request() == generation.request();
  });
  EXPECT_EQ(node.generations(), 4u);
  EXPECT_EQ(node.engines().count("answered"), 1u) << "an engine was drained for nobody";
  EXPECT_EQ(node.get("/health").status(), 200);
  EXPECT_EQ(read_stream(stalled[0].whole_body()).content.size(), kPieces * kPieceBytes);
  // The others leave while their answers stand still.
  stalled.clear();
  for (int i = 0; i < 2; ++i) node.engines().expect("closed");
}

}  // namespace
}  // namespace werk::test
