#include "werk/gateway/openai_fold.hpp"

#include <gtest/gtest.h>

#include <array>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "tests/support/fold_equal.hpp"
#include "werk/http/sse.hpp"

namespace werk::gateway {
namespace {

std::filesystem::path data_folder() { return WERK_FOLD_FILES; }

std::string read_file(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

// The whole answer that a recorded engine stream folds to, read in pieces of this size.
Result<std::string> folded(std::string_view stream, std::string_view model, std::uint32_t choices,
                           std::size_t piece) {
  ChatStreamOptions options;
  options.client_model = model;
  options.usage = Wanted::yes;
  options.choices = choices;
  ChatStreamFilter filter(std::move(options));
  ChatFoldOptions fold_options;
  fold_options.client_model = model;
  ChatFold fold(std::move(fold_options));
  http::SseParser parser;
  for (std::size_t at = 0; at < stream.size(); at += piece) {
    parser.feed(stream.substr(at, piece));
    for (;;) {
      const auto item = parser.next();
      if (!item) return fail(item.error());
      if (!*item) break;
      if ((*item)->kind == http::SseItem::Kind::comment) continue;
      if (Status status = filter.event((*item)->name, (*item)->data, fold); !status)
        return pass_on(status);
    }
  }
  if (Status status = filter.finish(fold); !status) return pass_on(status);
  return fold.finish();
}

// Pairs recorded from llama-server 0.5.0: the same request streamed and whole.
TEST(ChatFold, GivesTheEnginesOwnWholeAnswer) {
  std::size_t pairs = 0;
  for (const auto& entry : std::filesystem::directory_iterator(data_folder())) {
    const std::string name = entry.path().filename().string();
    if (!name.ends_with(".whole.json")) continue;
    ++pairs;
    const std::string whole = read_file(entry.path());
    const std::string stem = name.substr(0, name.size() - std::string_view(".whole.json").size());
    const std::string stream = read_file(data_folder() / (stem + ".stream.txt"));
    const std::uint32_t choices = name.starts_with("two_choices") ? 2 : 1;
    for (const std::size_t piece : {stream.size(), std::size_t{1}, std::size_t{61}}) {
      const auto answer = folded(stream, "m", choices, piece);
      ASSERT_TRUE(answer) << name << ": " << answer.error().message;
      EXPECT_EQ(test::blanked(*answer), test::blanked(whole)) << name;
    }
  }
  EXPECT_GE(pairs, 10u);
}

std::string fold_chunks(std::initializer_list<std::string_view> chunks, ChatFoldOptions options) {
  ChatFold fold(std::move(options));
  for (const std::string_view chunk : chunks) {
    const std::array<std::string_view, 2> pieces = {chunk.substr(0, 5), chunk.substr(5)};
    EXPECT_TRUE(fold.chunk(pieces));
  }
  return fold.finish();
}

TEST(ChatFold, GivesWhatTheEngineLeftOut) {
  ChatFoldOptions options;
  options.client_model = "a \"b\"";
  options.default_id = "chatcmpl-1";
  options.default_created = 7;
  EXPECT_EQ(
      fold_chunks({R"({"choices":[{"index":0,"delta":{"content":"x"},"finish_reason":"stop"}]})"},
                  options),
      R"({"choices":[{"finish_reason":"stop","index":0,"message":{"role":"assistant",)"
      R"("content":"x"}}],"created":7,"model":"a \"b\"","object":"chat.completion",)"
      R"("id":"chatcmpl-1"})");
}

TEST(ChatFold, KeepsTheSpellingOfTextThatWasCutAnywhere) {
  const std::string whole = fold_chunks(
      {R"({"choices":[{"index":0,"delta":{"content":"\ud83d","refusal":"no"}}]})",
       R"({"choices":[{"index":0,"delta":{"content":"\ude00\/\u0041","refusal":"!"}}]})"},
      ChatFoldOptions{.client_model = "m"});
  EXPECT_NE(whole.find(R"("content":"\ud83d\ude00\/\u0041","refusal":"no!")"), std::string::npos);
}

TEST(ChatFold, AnswersAreBounded) {
  ChatFold fold(ChatFoldOptions{.client_model = "m", .bytes_max = 1000});
  const std::array<std::string_view, 1> chunk = {
      R"({"choices":[{"index":0,"delta":{"content":"0123456789"}}]})"};
  int taken = 0;
  Status status;
  for (; taken < 100 && status; ++taken) status = fold.chunk(chunk);
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code, ErrorCode::engine_failed);
  EXPECT_LT(taken, 50);
  const std::array<std::string_view, 1> far = {R"({"choices":[{"index":4000000000,"delta":{}}]})"};
  EXPECT_FALSE(ChatFold(ChatFoldOptions{.client_model = "m"}).chunk(far));
}

}  // namespace
}  // namespace werk::gateway
