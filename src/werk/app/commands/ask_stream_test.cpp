#include "werk/app/commands/ask_stream.hpp"

#include <gtest/gtest.h>

namespace werk::app {
namespace {

constexpr std::string_view kStream =
    ": a sign of life\n\n"
    "data: {\"choices\":[{\"index\":0,\"delta\":{\"role\":\"assistant\",\"content\":null}}],"
    "\"prompt_progress\":{\"total\":12,\"cache\":0,\"processed\":5}}\n\n"
    "data: {\"choices\":[{\"index\":0,\"delta\":{\"reasoning_content\":\"hm\"}}]}\n\n"
    "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"Gr\\u00fc\"}}]}\n\n"
    "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"\xc3\x9f\"}}]}\n\n"
    "data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"length\"}]}\n\n"
    "data: {\"choices\":[],\"usage\":{\"prompt_tokens\":12,\"completion_tokens\":2,"
    "\"prompt_tokens_details\":{\"cached_tokens\":7}}}\n\n"
    "data: [DONE]\n\n";

struct Heard {
  std::string all;
  AnswerReader reader{{[this](std::string_view text) { all += text; },
                       [this](std::string_view text) { all.append("<").append(text).append(">"); },
                       [this](std::uint64_t read, std::uint64_t of) {
                         all += std::to_string(read) + "/" + std::to_string(of) + " ";
                       }}};
};

TEST(AnswerReader, HearsTheSameWhereverTheStreamIsCut) {
  for (std::size_t cut = 1; cut < kStream.size(); ++cut) {
    Heard heard;
    ASSERT_TRUE(heard.reader.feed(kStream.substr(0, cut)));
    ASSERT_TRUE(heard.reader.feed(kStream.substr(cut)));
    ASSERT_EQ(heard.all, "5/12 <hm>Grü\xc3\x9f") << "cut at " << cut;
    ASSERT_TRUE(heard.reader.is_whole());
    ASSERT_EQ(heard.reader.facts().finish_reason, "length");
    ASSERT_EQ(heard.reader.facts().prompt_tokens, 12u);
    ASSERT_EQ(heard.reader.facts().cached_tokens, 7u);
    ASSERT_EQ(heard.reader.facts().answer_tokens, 2u);
  }
}

TEST(AnswerReader, IsNotWholeWithoutTheEndOfTheStream) {
  Heard heard;
  ASSERT_TRUE(heard.reader.feed(kStream.substr(0, kStream.find("data: [DONE]"))));
  EXPECT_FALSE(heard.reader.is_whole());
}

TEST(AnswerReader, FailsWithTheWordsOfAnErrorWithinTheStream) {
  Heard heard;
  const Status fed = heard.reader.feed(
      "data: {\"choices\":[{\"delta\":{\"content\":\"so far\"}}]}\n\n"
      "data: {\"error\":{\"message\":\"the engine died\",\"code\":\"engine_failed\"}}\n\n");
  ASSERT_FALSE(fed);
  EXPECT_EQ(fed.error().message, "the engine died");
  EXPECT_EQ(heard.all, "so far");
}

TEST(AnswerReader, FailsForWhatIsNoSuchStream) {
  Heard heard;
  EXPECT_FALSE(heard.reader.feed("data: <html>\n\n"));
}

TEST(AnswerReader, TakesMembersOfOtherTypesForAbsent) {
  Heard heard;
  EXPECT_TRUE(heard.reader.feed("data: {\"choices\":{\"0\":1},\"usage\":[-1],\"x\":2}\n\n"));
  EXPECT_TRUE(heard.reader.feed("data: {\"usage\":{\"prompt_tokens\":-4}}\n\ndata: 7\n\n"));
  EXPECT_FALSE(heard.reader.facts().prompt_tokens);
  EXPECT_EQ(heard.all, "");
}

}  // namespace
}  // namespace werk::app
