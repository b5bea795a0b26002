#include "werk/engine/worker/answer_chunks.hpp"

#include <gtest/gtest.h>

#include <boost/json.hpp>

namespace werk::engine::worker {
namespace {

namespace json = boost::json;

// The parts of a stream that matter, one line for each chunk.
std::vector<std::string> lines(AnswerChunks& chunks) {
  std::vector<std::string> all;
  while (const auto text = chunks.next()) {
    if (*text == kStreamEnd) {
      all.emplace_back("end");
      continue;
    }
    const json::value chunk = json::parse(*text);
    std::string line = json::serialize(chunk.at("choices"));
    for (const auto* name : {"prompt_progress", "usage", "__verbose"}) {
      if (const auto* value = chunk.as_object().if_contains(name)) line += json::serialize(*value);
    }
    all.push_back(line);
  }
  return all;
}

GenerationFinished end(EndReason reason) { return {1, reason, {7, 0, 5}}; }

TEST(AnswerChunks, TellThePromptThenTextThenTheReasonThenUsage) {
  AnswerChunks chunks(ChatTask{}, "m", "s");
  chunks.started({1, 7, 0});
  chunks.token({1, "a", 1});
  chunks.token({1, "\xC3", 1});
  chunks.token({1, "\xA9", 1});
  chunks.finished(end(EndReason::length));
  EXPECT_EQ(lines(chunks),
            (std::vector<std::string>{
                R"([]{"total":7,"cache":0,"processed":0})",
                R"([{"index":0,"delta":{"role":"assistant","content":"a"},"finish_reason":null}])",
                R"([{"index":0,"delta":{"content":"é"},"finish_reason":null}])",
                R"([{"index":0,"delta":{},"finish_reason":"length"}])",
                R"([]{"prompt_tokens":7,"completion_tokens":5,"total_tokens":12,)"
                R"("prompt_tokens_details":{"cached_tokens":0}})",
                "end"}));
}

TEST(AnswerChunks, EndAtAStopStringAndCountOnlyWhatCameUntilThen) {
  ChatTask task;
  task.stops = {"END"};
  task.tells_stop = true;
  AnswerChunks chunks(task, "m", "s");
  for (const auto* piece : {"x", "E", "ND", "y"}) chunks.token({1, piece, 1});
  EXPECT_TRUE(chunks.met_stop());
  chunks.finished(end(EndReason::cancelled));
  const auto all = lines(chunks);
  ASSERT_EQ(all.size(), 4u);
  EXPECT_EQ(all[0],
            R"([{"index":0,"delta":{"role":"assistant","content":"x"},"finish_reason":null}])");
  EXPECT_EQ(all[1], R"([{"index":0,"delta":{},"finish_reason":"stop"}]{"stopping_word":"END"})");
  EXPECT_NE(all[2].find(R"("completion_tokens":3)"), std::string::npos);
}

TEST(AnswerChunks, GiveCallsAsCallsWhereToolsMayBeUsed) {
  ChatTask task;
  task.has_tools = true;
  AnswerChunks chunks(task, "m", "s");
  chunks.token({1, "<tool_call>{\"name\":\"f\",\"arguments\":{\"a\":1}}</tool_call>", 9});
  chunks.finished(end(EndReason::stop));
  const auto all = lines(chunks);
  ASSERT_EQ(all.size(), 4u);
  EXPECT_EQ(all[0],
            R"([{"index":0,"delta":{"role":"assistant","tool_calls":[{"index":0,"id":"call_s_0",)"
            R"("type":"function","function":{"name":"f","arguments":"{\"a\":1}"}}]},)"
            R"("finish_reason":null}])");
  EXPECT_EQ(all[1], R"([{"index":0,"delta":{},"finish_reason":"tool_calls"}])");
}

TEST(AnswerChunks, OfAnEmptyAnswerAreStillAnAnswer) {
  AnswerChunks chunks(ChatTask{}, "m", "s");
  chunks.finished(end(EndReason::stop));
  EXPECT_EQ(lines(chunks).front(),
            R"([{"index":0,"delta":{"role":"assistant","content":""},"finish_reason":null}])");
}

}  // namespace
}  // namespace werk::engine::worker
