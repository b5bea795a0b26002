#include "werk/gateway/openai_stream.hpp"

#include <gtest/gtest.h>

#include "werk/base/json_cursor.hpp"
#include "werk/gateway/openai_fold.hpp"

namespace werk::gateway {
namespace {

class Collector final : public ChunkSink {
 public:
  Status chunk(std::span<const std::string_view> pieces) override {
    std::string& text = chunks.emplace_back();
    for (const std::string_view piece : pieces) text += piece;
    JsonScanner scanner;
    EXPECT_TRUE(scanner.feed(text)) << text;
    EXPECT_TRUE(scanner.finish()) << text;
    return {};
  }
  std::vector<std::string> chunks;
};

// A filter and what came out of it.
struct Stream {
  explicit Stream(ChatStreamOptions options = {}) : filter(named(std::move(options))) {}

  static ChatStreamOptions named(ChatStreamOptions options) {
    if (options.client_model.empty()) options.client_model = "my \"model\"";
    options.call_id_seed = "s";
    return options;
  }
  Stream& send(std::string_view data, std::string_view name = "") {
    if (status) status = filter.event(name, data, sink);
    return *this;
  }
  // A chunk of choice 0 with this delta and finish reason (JSON).
  Stream& delta(const std::string& json, const std::string& reason = "null", int index = 0) {
    return send(R"({"id":"c","model":"e","choices":[{"index":)" + std::to_string(index) +
                R"(,"delta":)" + json + R"(,"finish_reason":)" + reason + "}]}");
  }
  Stream& finish() {
    if (status) status = filter.finish(sink);
    return *this;
  }
  std::string last_delta() const {
    const std::string& chunk = sink.chunks.back();
    return std::string(
        find_member(*JsonArrayCursor(*find_member(chunk, "choices")).next(), "delta").value_or(""));
  }
  std::string last_reason() const {
    const std::string& chunk = sink.chunks.back();
    return std::string(
        find_member(*JsonArrayCursor(*find_member(chunk, "choices")).next(), "finish_reason")
            .value_or(""));
  }

  ChatStreamFilter filter;
  Collector sink;
  Status status;
};

constexpr std::string_view kRole = R"({"role":"assistant","content":null})";
constexpr std::string_view kUsage =
    R"({"choices":[],"id":"c","model":"e","usage":{"completion_tokens":5,"prompt_tokens":7,)"
    R"("total_tokens":12,)"
    R"("prompt_tokens_details":{"cached_tokens":3}},"timings":{"x":1}})";

TEST(ChatStream, ReplacesTheModelNameAndNothingElse) {
  Stream stream;
  stream.delta(std::string(kRole));
  stream.send(R"({"choices": [{"finish_reason":null,"index":0,"delta":{"content":"a\/\u00e9"}}],)"
              R"("n":1.0,"big":)"
              R"(9007199254740993,"model" : "engine-key","z":1e-7,"z":2})");
  ASSERT_TRUE(stream.status);
  EXPECT_EQ(stream.sink.chunks.back(),
            R"({"choices": [{"finish_reason":null,"index":0,"delta":{"content":"a\/\u00e9"}}],)"
            R"("n":1.0,"big":)"
            R"(9007199254740993,"model" : "my \"model\"","z":1e-7,"z":2})");
  stream.send(R"({"choices":[{"index":0,"delta":{"content":"x"}}]})");
  EXPECT_EQ(find_member(stream.sink.chunks.back(), "model"), R"("my \"model\"")");
}

TEST(ChatStream, AnEndWithoutAFinishReasonIsAnError) {
  for (const bool with_done : {false, true}) {
    Stream stream;
    stream.delta(std::string(kRole)).delta(R"({"content":"half"})");
    if (with_done) stream.send("[DONE]");
    EXPECT_EQ(stream.filter.done(), with_done);
    stream.finish();
    ASSERT_FALSE(stream.status);
    EXPECT_EQ(stream.status.error().code, ErrorCode::engine_failed);
    EXPECT_EQ(stream.status.error().origin, Origin::engine);
  }
  EXPECT_FALSE(Stream().finish().status) << "an empty stream is an error";
}

TEST(ChatStream, AFinishReasonMakesTheEndWholeWithOrWithoutDone) {
  EXPECT_TRUE(Stream().delta(R"({"content":"x"})").delta("{}", R"("stop")").finish().status);
  EXPECT_TRUE(Stream()
                  .delta(R"({"content":"x"})")
                  .delta("{}", R"("length")")
                  .send("[DONE]")
                  .finish()
                  .status);
}

TEST(ChatStream, EveryChoiceNeedsItsFinishReason) {
  ChatStreamOptions two;
  two.choices = 2;
  Stream half(two);
  EXPECT_FALSE(
      half.delta("{}", R"("stop")", 0).delta(R"({"content":"x"})", "null", 1).finish().status);
  Stream whole(two);
  EXPECT_TRUE(whole.delta("{}", R"("stop")", 1).delta("{}", R"("length")", 0).finish().status);
  EXPECT_EQ(whole.filter.facts().finish_reasons, (std::vector<std::string>{"length", "stop"}));
}

TEST(ChatStream, NothingAfterDoneCounts) {
  Stream stream;
  stream.delta("{}", R"("stop")")
      .send("[DONE]")
      .send("garbage")
      .send(R"({"error":"late"})")
      .finish();
  EXPECT_TRUE(stream.status);
  EXPECT_EQ(stream.sink.chunks.size(), 1u);
}

TEST(ChatStream, TheFirstChunkOfEachChoiceCarriesTheRole) {
  ChatStreamOptions two;
  two.choices = 2;
  Stream stream(two);
  stream.delta(R"({"content":"a"})");
  EXPECT_EQ(stream.last_delta(), R"({"content":"a","role":"assistant"})");
  stream.delta(R"({"content":"b"})");
  EXPECT_EQ(stream.last_delta(), R"({"content":"b"})");
  stream.delta("{}", R"("stop")", 1);
  EXPECT_EQ(stream.last_delta(), R"({"role":"assistant"})");
  Stream null_role;
  null_role.delta(R"({"role":null,"content":"a"})");
  EXPECT_EQ(null_role.last_delta(), R"({"role":"assistant","content":"a"})");
  Stream no_delta;
  no_delta.send(R"({"model":"e","choices":[{"index":0,"finish_reason":"stop"}]})");
  EXPECT_EQ(no_delta.last_delta(), R"({"role":"assistant"})");
}

TEST(ChatStream, ProgressReachesTheClientOnlyIfItAskedAndTheRoleStillComes) {
  const std::string progress =
      R"({"choices":[{"finish_reason":null,"index":0,"delta":{"role":"assistant",)"
      R"("content":null}}],"model":"e",)"
      R"("prompt_progress":{"total":33,"cache":30,"processed":31,"time_ms":0}})";
  Stream stream;
  stream.send(progress).delta(R"({"content":"a"})");
  ASSERT_EQ(stream.sink.chunks.size(), 1u);
  EXPECT_EQ(stream.last_delta(), R"({"content":"a","role":"assistant"})");
  ASSERT_TRUE(stream.filter.facts().started);
  EXPECT_EQ(stream.filter.facts().started->prompt_tokens, 33u);
  EXPECT_EQ(stream.filter.facts().started->cached_tokens, 30u);
  EXPECT_EQ(stream.filter.facts().content_events, 1u);
  ChatStreamOptions wanting;
  wanting.progress = Wanted::yes;
  Stream asked(wanting);
  asked.send(progress).send(progress);
  EXPECT_EQ(asked.sink.chunks.size(), 2u);
  EXPECT_EQ(asked.filter.facts().content_events, 0u);
}

TEST(ChatStream, UsageReachesTheClientOnlyIfItAskedOnceAndLast) {
  Stream stream;
  stream.delta("{}", R"("stop")").send(kUsage).send("[DONE]").finish();
  ASSERT_TRUE(stream.status);
  EXPECT_EQ(stream.sink.chunks.size(), 1u);
  ASSERT_TRUE(stream.filter.facts().usage) << "Werk's own accounting has it all the same";
  EXPECT_EQ(stream.filter.facts().usage->prompt_tokens, 7u);
  EXPECT_EQ(stream.filter.facts().usage->cached_tokens, 3u);
  EXPECT_EQ(stream.filter.facts().usage->completion_tokens, 5u);

  ChatStreamOptions wanting;
  wanting.usage = Wanted::yes;
  Stream asked(wanting);
  asked.delta("{}", R"("stop")").send(kUsage);
  EXPECT_EQ(asked.sink.chunks.size(), 1u);
  asked.send("[DONE]").finish();
  ASSERT_EQ(asked.sink.chunks.size(), 2u);
  std::string expected(kUsage);
  expected.replace(expected.find(R"("e")"), 3, R"("my \"model\"")");
  EXPECT_EQ(asked.sink.chunks.back(), expected);
}

TEST(ChatStream, UsageBesideTheTextIsTakenOutOrGivenAtTheEnd) {
  const std::string beside =
      R"({"id":"c","model":"e","choices":[{"index":0,"delta":{"role":"assistant","content":"x"},)"
      R"("finish_reason":"stop"}],"usage":{"prompt_tokens":1,"completion_tokens":2}})";
  Stream stream;
  stream.send(beside).finish();
  ASSERT_TRUE(stream.status);
  ASSERT_EQ(stream.sink.chunks.size(), 1u);
  EXPECT_FALSE(find_member(stream.sink.chunks[0], "usage"));
  ChatStreamOptions wanting;
  wanting.usage = Wanted::yes;
  Stream asked(wanting);
  asked.send(beside).finish();
  ASSERT_EQ(asked.sink.chunks.size(), 2u);
  EXPECT_FALSE(find_member(asked.sink.chunks[0], "usage"));
  EXPECT_EQ(asked.sink.chunks[1],
            R"({"id":"c","model":"my \"model\"","choices":[],"usage":{"prompt_tokens":1,)"
            R"("completion_tokens":2}})");
  Stream nulls;
  nulls.send(R"({"model":"e","choices":[{"index":0,"delta":{"role":"assistant"}}],"usage":null})");
  EXPECT_FALSE(find_member(nulls.sink.chunks[0], "usage"));
  Stream asked_nulls(wanting);
  asked_nulls.send(
      R"({"model":"e","choices":[{"index":0,"delta":{"role":"assistant"}}],"usage":null})");
  EXPECT_EQ(find_member(asked_nulls.sink.chunks[0], "usage"), "null");
}

TEST(ChatStream, WithAUsageEventPerChoiceTheClientGetsOneAndTheCountIsOfAll) {
  for (const int first : {0, 1}) {
    ChatStreamOptions two;
    two.choices = 2;
    two.usage = Wanted::yes;
    Stream stream(two);
    const auto usage = [](int tokens) {
      return R"({"model":"e","choices":[],"usage":{"prompt_tokens":9,"completion_tokens":)" +
             std::to_string(tokens) + "}}";
    };
    stream.delta("{}", R"("stop")", first).send(usage(10 + first));
    stream.delta("{}", R"("stop")", 1 - first).send(usage(11 - first)).send("[DONE]").finish();
    ASSERT_TRUE(stream.status);
    ASSERT_EQ(stream.sink.chunks.size(), 3u);
    EXPECT_NE(stream.sink.chunks.back().find(R"("completion_tokens":10)"), std::string::npos);
    EXPECT_EQ(stream.filter.facts().usage->completion_tokens, 21u);
  }
}

TEST(ChatStream, FinishReasonsFollowWhatWasSent) {
  const std::string call =
      R"({"tool_calls":[{"index":0,"id":"a","type":"function","function":{"name":"f",)"
      R"("arguments":"{}"}}]})";
  const auto reason = [&](std::initializer_list<std::string> deltas,
                          const std::string& engine_reason) {
    Stream stream;
    for (const std::string& delta : deltas) stream.delta(delta);
    stream.delta("{}", engine_reason).finish();
    EXPECT_TRUE(stream.status);
    EXPECT_EQ(stream.last_reason(), "\"" + stream.filter.facts().finish_reasons[0] + "\"");
    return stream.filter.facts().finish_reasons[0];
  };
  const std::string text = R"({"content":"x"})";
  EXPECT_EQ(reason({call}, R"("stop")"), "tool_calls");
  EXPECT_EQ(reason({call}, R"("tool_calls")"), "tool_calls");
  EXPECT_EQ(reason({call}, R"("length")"), "length");
  EXPECT_EQ(reason({text}, R"("tool_calls")"), "stop");
  EXPECT_EQ(reason({text, R"({"tool_calls":[]})"}, R"("tool_calls")"), "stop");
  EXPECT_EQ(reason({text}, R"("stop")"), "stop");
  EXPECT_EQ(reason({text}, R"("eos")"), "stop");
  EXPECT_EQ(reason({text}, R"("content_filter")"), "content_filter");
  Stream empty;
  EXPECT_FALSE(empty.delta("{}", R"("")").finish().status) << "an empty reason is none";
  EXPECT_FALSE(Stream().delta("{}", R"("error")").status);
}

// The (index, id, arguments) of each call the client puts together from the stream.
std::vector<std::string> calls_of(const std::vector<std::string>& deltas) {
  ChatFold fold(ChatFoldOptions{.client_model = "m"});
  ChatStreamFilter filter(Stream::named({}));
  for (const std::string& delta : deltas) {
    const std::string chunk =
        R"({"model":"e","choices":[{"index":0,"delta":{"tool_calls":)" + delta + "}}]}";
    EXPECT_TRUE(filter.event("", chunk, fold));
  }
  EXPECT_TRUE(
      filter.event("", R"({"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]})", fold));
  EXPECT_TRUE(filter.finish(fold));
  const std::string whole = fold.finish();
  std::vector<std::string> calls;
  const auto choice = *JsonArrayCursor(*find_member(whole, "choices")).next();
  JsonArrayCursor each(find_member(*find_member(choice, "message"), "tool_calls").value_or(""));
  while (const auto call = each.next()) {
    const auto function = *find_member(*call, "function");
    calls.push_back(*json_string(*find_member(*call, "id")) + " " +
                    *json_string(*find_member(function, "name")) + " " +
                    *json_string(*find_member(function, "arguments")));
  }
  return calls;
}

using Calls = std::vector<std::string>;

TEST(ChatStreamToolCalls, GoodOnesPassUntouched) {
  Stream stream;
  const std::string first =
      R"({"role":"assistant","tool_calls":[{"index":0,"id":"x","type":"function",)"
      R"("function":{"name":"f"}}]})";
  stream.delta(first);
  EXPECT_EQ(stream.last_delta(), first);
  const std::string next = R"({"tool_calls":[{"index":0,"function":{"arguments":"{\u0022a\":"}}]})";
  stream.delta(next);
  EXPECT_EQ(stream.last_delta(), next);
  EXPECT_EQ(stream.filter.facts().tool_calls, 1u);
}

TEST(ChatStreamToolCalls, AMissingIndexIsGiven) {
  EXPECT_EQ(
      calls_of({R"([{"id":"a","type":"function","function":{"name":"f","arguments":"{\"x\":"}}])",
                R"([{"function":{"arguments":"1}"}}])",
                R"([{"id":"b","type":"function","function":{"name":"g","arguments":"{}"}}])"}),
      (Calls{"a f {\"x\":1}", "b g {}"}));
  EXPECT_EQ(calls_of({R"([{"function":{"name":"f","arguments":"{}"}},{"function":{"name":"f",)"
                      R"("arguments":"{}"}}])"}),
            (Calls{"call_s1 f {}", "call_s2 f {}"}));
}

TEST(ChatStreamToolCalls, ARepeatedZeroWithANewIdIsANewCall) {
  EXPECT_EQ(calls_of({R"([{"index":0,"id":"a","function":{"name":"f","arguments":"{\"x\""}}])",
                      R"([{"index":0,"function":{"arguments":":1}"}}])",
                      R"([{"index":0,"id":"b","function":{"name":"f","arguments":""}}])",
                      R"([{"index":0,"function":{"arguments":"{}"}}])"}),
            (Calls{"a f {\"x\":1}", "b f {}"}));
}

TEST(ChatStreamToolCalls, ARepeatedZeroWithoutIdsIsANewCallOnceTheLastIsWhole) {
  EXPECT_EQ(calls_of({R"([{"index":0,"function":{"name":"f","arguments":"{\"x\":"}}])",
                      R"([{"index":0,"function":{"name":"f","arguments":"1}"}}])",
                      R"([{"index":0,"function":{"name":"f","arguments":"{}"}}])",
                      R"([{"index":0,"function":{"name":"g","arguments":"{}"}}])"}),
            (Calls{"call_s1 f {\"x\":1}", "call_s2 f {}", "call_s3 g {}"}));
}

TEST(ChatStreamToolCalls, InterleavedCallsStayApart) {
  EXPECT_EQ(calls_of({R"([{"index":3,"id":"a","function":{"name":"f","arguments":"{"}}])",
                      R"([{"index":5,"id":"b","function":{"name":"g","arguments":"{"}}])",
                      R"([{"index":3,"function":{"arguments":"\"x\":1}"}},{"index":5,)"
                      R"("function":{"arguments":"}"}}])"}),
            (Calls{"a f {\"x\":1}", "b g {}"}));
  EXPECT_EQ(calls_of({R"([{"index":0,"id":"a","function":{"name":"f","arguments":"{"}}])",
                      R"([{"index":0,"id":"b","function":{"name":"g","arguments":"{"}}])",
                      R"([{"index":0,"id":"a","function":{"arguments":"\"x\":1}"}}])",
                      R"([{"index":0,"id":"b","function":{"arguments":"}"}}])"}),
            (Calls{"a f {\"x\":1}", "b g {}"}));
}

TEST(ChatStreamToolCalls, TheIdStandsOnTheFirstDelta) {
  Stream stream;
  stream.delta(R"({"role":"assistant","tool_calls":[{"index":0,"id":"","function":{"name":"f",)"
               R"("arguments":""}}]})");
  EXPECT_NE(stream.last_delta().find(R"("id":"call_s1")"), std::string::npos);
  EXPECT_NE(stream.last_delta().find(R"("type":"function")"), std::string::npos);
  stream.delta(R"({"tool_calls":[{"index":0,"id":"late","function":{"arguments":"{}"}}]})");
  EXPECT_EQ(stream.last_delta().find("late"), std::string::npos) << "an id never changes";
}

TEST(ChatStreamToolCalls, ArgumentsGivenAsAnObjectBecomeText) {
  EXPECT_EQ(
      calls_of({R"([{"index":0,"id":"a","function":{"name":"f","arguments":{"x":"y","n":1.0}}}])"}),
      (Calls{R"(a f {"x":"y","n":1.0})"}));
  EXPECT_EQ(calls_of({R"([{"index":0,"id":"a","function":{"name":"f","arguments":null}}])"}),
            (Calls{"a f "}));
}

TEST(ChatStreamToolCalls, AreBoundedInNumberAndBytes) {
  Stream many;
  for (int i = 0; i < 129 && many.status; ++i) {
    many.delta(R"({"tool_calls":[{"index":)" + std::to_string(i) + R"(,"id":"i)" +
               std::to_string(i) + R"(","function":{"name":"f"}}]})");
  }
  ASSERT_FALSE(many.status);
  EXPECT_EQ(many.filter.facts().tool_calls, 128u);
  Stream large;
  const std::string fragment(std::size_t{1} << 20, 'x');
  int sent = 0;
  for (; sent < 20 && large.status; ++sent) {
    large.delta(R"({"tool_calls":[{"index":0,"function":{"arguments":")" + fragment + R"("}}]})");
  }
  EXPECT_EQ(sent, 9);
}

TEST(ChatStream, ReasoningComesOutUnderOneName) {
  Stream stream;
  stream.delta(std::string(kRole));
  stream.delta(R"({"reasoning":"a"})");
  EXPECT_EQ(stream.last_delta(), R"({"reasoning_content":"a"})");
  stream.delta(R"({"reasoning_content":"b"})");
  EXPECT_EQ(stream.last_delta(), R"({"reasoning_content":"b"})");
  stream.delta(R"({"reasoning":"c","reasoning_content":"c"})");
  EXPECT_EQ(stream.last_delta(), R"({"reasoning_content":"c"})");
  stream.delta(R"({"reasoning_content":null,"reasoning":"d"})");
  EXPECT_EQ(stream.last_delta(), R"({"reasoning_content":"d"})");
  stream.delta(R"({"content":"e","reasoning":null})");
  EXPECT_EQ(stream.last_delta(), R"({"content":"e"})");
  EXPECT_EQ(stream.filter.facts().content_events, 5u);
}

TEST(ChatStream, ContentGivenAsPartsBecomesAString) {
  Stream stream;
  stream.delta(std::string(kRole))
      .delta(R"({"content":[{"type":"text","text":"a\n"},{"type":"text","text":"b"}]})");
  EXPECT_EQ(stream.last_delta(), R"({"content":"a\nb"})");
}

TEST(ChatStream, ErrorsInsideTheStreamEndIt) {
  const auto error = [](std::string_view data, std::string_view name = "") {
    Stream stream;
    stream.delta(std::string(kRole)).send(data, name);
    EXPECT_FALSE(stream.status) << data;
    return stream.status ? Error{} : stream.status.error();
  };
  EXPECT_EQ(error(R"({"error":{"code":500,"message":"boom","type":"server_error"}})").message,
            "the engine failed: boom");
  EXPECT_EQ(error(R"({"error":"boom"})").code, ErrorCode::engine_failed);
  EXPECT_EQ(error(R"({"code":400,"message":"bad","type":"BadRequest"})").code,
            ErrorCode::invalid_request);
  EXPECT_EQ(error(R"({"detail":"x"})", "error").code, ErrorCode::engine_failed);
  EXPECT_EQ(error("it broke", "error").message, "the engine failed: it broke");
  EXPECT_EQ(error("{\"choices\":[").code, ErrorCode::engine_failed);
  EXPECT_EQ(error("\"text\"").code, ErrorCode::engine_failed);
  EXPECT_EQ(error("{\"x\":\"\xFF\"}").code, ErrorCode::engine_failed);
  EXPECT_EQ(error(R"({"choices":[{"index":4000000000,"delta":{}}]})").code,
            ErrorCode::engine_failed);
  EXPECT_EQ(error(R"({"choices":[7]})").code, ErrorCode::engine_failed);
}

TEST(ChatStream, WhatMeansNothingIsDropped) {
  Stream stream;
  stream.send("").send("  ").send("{}").send(R"({"choices":[]})").send(R"({"type":"ping"})");
  EXPECT_TRUE(stream.status);
  EXPECT_TRUE(stream.sink.chunks.empty());
}

TEST(ChatStream, ChunksOfSeveralLinesLeaveOnOne) {
  Stream stream;
  stream.send(
      "{\"model\":\"e\",\n\"choices\":[\r\n{\"index\":0,\"delta\":{\"role\":\"assistant\"}}]}");
  ASSERT_EQ(stream.sink.chunks.size(), 1u);
  EXPECT_EQ(stream.sink.chunks[0].find_first_of("\r\n"), std::string::npos);
}

TEST(ChunkWriter, WritesOneEventPerChunk) {
  std::string out;
  ChunkWriter writer(out);
  ChatStreamFilter filter(ChatStreamOptions{.client_model = "m"});
  ASSERT_TRUE(filter.event("",
                           R"({"model":"e","choices":[{"index":0,"delta":{"role":"assistant"},)"
                           R"("finish_reason":"stop"}]})",
                           writer));
  ASSERT_TRUE(filter.finish(writer));
  EXPECT_EQ(out + std::string(kChatStreamEnd),
            "data: "
            "{\"model\":\"m\",\"choices\":[{\"index\":0,\"delta\":{\"role\":\"assistant\"},"
            "\"finish_reason\":\"stop\"}]}"
            "\n\ndata: [DONE]\n\n");
}

}  // namespace
}  // namespace werk::gateway
