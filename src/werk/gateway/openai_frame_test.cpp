// Chunks that fit the frame of the one before them come out as if they were read whole: as they go
// on to a client, folded into one answer, and as events.
#include <gtest/gtest.h>

#include <array>

#include "werk/gateway/chunk_events.hpp"
#include "werk/gateway/openai_fold.hpp"
#include "werk/gateway/openai_stream.hpp"
#include "werk/gateway/shown_events.hpp"

namespace werk::gateway {
namespace {

// Whether each chunk has another id, of the same length: then none fits the frame of another.
enum class Ids : std::uint8_t { same, other };

// Runs these choices, one chunk each, through a filter into this sink, up to the first failure.
std::string run(ChatStreamFilter& filter, ChunkSink& sink, const std::vector<std::string>& choices,
                Ids ids, std::string_view behind) {
  int number = 100;
  for (const std::string& each : choices) {
    const int id = ids == Ids::other ? number++ : 555;
    const std::string chunk =
        fmt::format(R"({{"id":"{}","model":"e","choices":{}{})", id, each, behind);
    const Status status = filter.event("", chunk, sink);
    if (!status) return status.error().message;
  }
  return fmt::format("{} with content", filter.facts().content_events);
}

ChatStreamFilter new_filter() {
  return ChatStreamFilter(
      {.client_model = "my \"model\"", .usage = Wanted::yes, .call_id_seed = "s"});
}

// What comes of them in all three ways, without the ids.
std::string outcome(const std::vector<std::string>& choices, Ids ids, std::string_view behind) {
  std::string sent;
  ChunkWriter writer(sent);
  ChatStreamFilter sending = new_filter();
  std::string all = run(sending, writer, choices, ids, behind);
  ChatFold fold({.client_model = "m"});
  ChatStreamFilter folding = new_filter();
  all += "\n" + run(folding, fold, choices, ids, behind);
  all += "\n" + fold.finish() + "\n";
  ShownEvents shown;
  ChatStreamFilter telling = new_filter();
  ChunkEvents events(telling.facts(), shown);
  all += run(telling, events, choices, ids, behind);
  all += "\n" + shown.shown + "\n" + sent;
  constexpr std::string_view kId = "\"id\":\"";
  for (std::size_t at = all.find(kId); at != std::string::npos; at = all.find(kId, at + 1)) {
    const bool of_a_chunk = all.substr(at + kId.size() + 3, 1) == "\"";
    if (of_a_chunk) all.replace(at + kId.size(), 3, "any");
  }
  return all;
}

std::string one(std::string_view delta, std::string_view reason = "null") {
  return fmt::format(R"([{{"index":0,"delta":{},"finish_reason":{}}}])", delta, reason);
}

const std::string kText = one(R"({"content":"a\/\u00e9 \"q\" \\"})");

constexpr std::array<std::string_view, 2> kBehind = {
    "}", R"(,"created":1,"n":[{"choices":[]}],"usage":null})"};

TEST(ChatFrame, GoodChoicesOfEveryKindComeOutTheSame) {
  const std::vector<std::string> choices = {
      one(R"({"role":"assistant","content":null})"),
      kText,
      one(R"({"content":""})"),
      one("{\"content\":\"\xE4\xBD\xA0\"}"),
      one(R"({"reasoning":"r"})"),
      one(R"({"content":[{"type":"text","text":"list"}]})"),
      one(R"({"tool_calls":[{"function":{"name":"f","arguments":"{\"a\":"}}]})"),
      one(R"({"tool_calls":[{"function":{"arguments":"1}"}}]})"),
      "[]",
      "[ \n" + kText.substr(1),
      R"([{"index":1,"delta":{"content":"b"}},{"index":0,"delta":{"content":"c"}}])",
      one("{}", "\"eos\"")};
  for (const std::string_view behind : kBehind) {
    const std::string framed = outcome(choices, Ids::same, behind);
    EXPECT_EQ(framed, outcome(choices, Ids::other, behind));
    EXPECT_NE(framed.find("9 with content"), std::string::npos) << framed;
  }
}

TEST(ChatFrame, WhatOnlySeemsToFitIsReadWhole) {
  const std::vector<std::string> bad = {
      "[",
      kText.substr(1),
      kText + kText,
      kText + R"(,"error":{"message":"no"})",
      kText + R"(,"choices":[{"index":0,"delta":{"content":"other"}}])",
      kText + R"(,"usage":{"prompt_tokens":1,"completion_tokens":2})",
      "null",
      "{}",
      "7",
      one("{,}"),
      one("{}", "nul"),
      R"(["no object"])",
      R"([{"index":999}])",
      one("{}", "\"error\""),
      one(R"({"content":"\x"})")};
  for (const std::string_view behind : kBehind) {
    for (const std::string& each : bad) {
      const std::vector<std::string> choices = {one("{}"), kText, kText, each, kText};
      EXPECT_EQ(outcome(choices, Ids::same, behind), outcome(choices, Ids::other, behind)) << each;
    }
  }
}

}  // namespace
}  // namespace werk::gateway
