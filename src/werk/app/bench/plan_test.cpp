#include "werk/app/bench/plan.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <boost/json/parse.hpp>
#include <set>

namespace werk::app::bench {
namespace {

namespace json = boost::json;

Plan plan() {
  Plan made;
  made.models = {"a", "b"};
  made.requests = 8;
  made.max_tokens = 32;
  made.seed = 7;
  return made;
}

std::string asked(const Plan& plan, std::uint64_t round, std::uint64_t request) {
  const json::value body = json::parse(body_of(plan, round, request));
  return std::string(body.at_pointer("/messages/0/content").as_string());
}

TEST(Plan, ModelsTakeTurnsAndEachGetsTheSamePrompts) {
  Plan two = plan();
  two.prompts.kind = PromptKind::made;
  two.prompts.tokens = 5;
  EXPECT_EQ(model_of(two, 0), "a");
  EXPECT_EQ(model_of(two, 1), "b");
  EXPECT_EQ(model_of(two, 2), "a");
  EXPECT_EQ(asked(two, 0, 0), asked(two, 0, 1));
  EXPECT_NE(asked(two, 0, 0), asked(two, 0, 2));
}

TEST(Plan, AChatBodyAsksForAStreamWithUsageAndTheSeed) {
  const json::object body = json::parse(body_of(plan(), 0, 1)).as_object();
  EXPECT_EQ(body.at("model").as_string(), "b");
  EXPECT_EQ(body.at("max_tokens").as_int64(), 32);
  EXPECT_EQ(body.at("seed").as_int64(), 7);
  EXPECT_EQ(body.at("temperature").as_int64(), 0);
  EXPECT_TRUE(body.at("stream").as_bool());
  EXPECT_TRUE(body.at("stream_options").at("include_usage").as_bool());
  EXPECT_FALSE(body.contains("ignore_eos"));
}

TEST(Plan, AMessagesBodyHoldsNothingThatItsDialectDoesNotKnow) {
  Plan messages = plan();
  messages.dialect = Dialect::anthropic;
  messages.end_of_sequence = EndOfSequence::ignored;
  const json::object body = json::parse(body_of(messages, 0, 0)).as_object();
  for (const std::string_view name : {"seed", "stream_options", "ignore_eos"})
    EXPECT_FALSE(body.contains(name)) << name;
  EXPECT_EQ(path_of(messages.dialect), "/messages");
}

TEST(Plan, MadePromptsShareTheirBeginningAndNeverComeAgain) {
  Plan made = plan();
  made.models = {"a"};
  made.prompts.kind = PromptKind::made;
  made.prompts.tokens = 12;
  made.prompts.shared_tokens = 20;
  std::set<std::string> seen;
  for (std::uint64_t round = 0; round < 3; ++round) {
    for (std::uint64_t i = 0; i < made.requests; ++i) seen.insert(asked(made, round, i));
  }
  EXPECT_EQ(seen.size(), 3u * made.requests);
  const std::string& first = *seen.begin();
  EXPECT_EQ(std::ranges::count(first, ' '), 31) << first;
  std::size_t place = 0;
  for (int words = 0; words < 20; ++words) place = first.find(' ', place) + 1;
  for (const std::string& prompt : seen)
    EXPECT_TRUE(prompt.starts_with(first.substr(0, place))) << prompt;
}

TEST(Plan, TheSeedDecidesPromptsAndArrivals) {
  Plan made = plan();
  made.prompts.kind = PromptKind::made;
  made.prompts.tokens = 12;
  Plan same = made;
  EXPECT_EQ(body_of(made, 2, 5), body_of(same, 2, 5));
  EXPECT_EQ(arrivals(made, 1, 4), arrivals(same, 1, 4));
  same.seed = 8;
  EXPECT_NE(asked(made, 2, 5), asked(same, 2, 5));
  EXPECT_NE(arrivals(made, 1, 4), arrivals(same, 1, 4));
}

TEST(Plan, ArrivalsComeAtTheRateOnAverage) {
  Plan many = plan();
  many.requests = 20'000;
  const std::vector<double> times = arrivals(many, 0, 50);
  EXPECT_EQ(times.size(), 20'000u);
  EXPECT_EQ(times.front(), 0);
  EXPECT_TRUE(std::ranges::is_sorted(times));
  EXPECT_NEAR(times.back(), 400, 12);
}

TEST(Prompts, OfAFileAreTextOrObjectsAndComeInTurn) {
  auto prompts = read_prompts(
      "first \"one\"\r\n\n"
      R"({"messages":[{"role":"user","content":"second"}],"tools":[],"model":"x","stream":false})"
      "\n"
      R"({"prompt":"third"})");
  ASSERT_TRUE(prompts) << prompts.error().message;
  EXPECT_EQ(prompts->digest.size(), 64u);
  Plan file = plan();
  file.models = {"a"};
  file.prompts = *prompts;
  EXPECT_EQ(asked(file, 0, 0), "first \"one\"");
  EXPECT_EQ(asked(file, 0, 2), "third");
  EXPECT_EQ(asked(file, 0, 3), "first \"one\"");
  const json::object body = json::parse(body_of(file, 0, 1)).as_object();
  EXPECT_EQ(body.at("model").as_string(), "a");
  EXPECT_TRUE(body.at("stream").as_bool());
  EXPECT_TRUE(body.at("tools").is_array());
}

TEST(Prompts, AFaultIsToldWithItsLine) {
  for (const auto& [text, line] : {std::pair<std::string_view, std::string_view>{"", "none"},
                                   {" \n", "none"},
                                   {"good\n{\"messages\":[}", "line 2"},
                                   {"{\"system\":\"x\"}", "line 1"},
                                   {"{\"prompt\":1}", "line 1"},
                                   {"a\nb\n\xff", "line 3"}}) {
    const auto prompts = read_prompts(text);
    ASSERT_FALSE(prompts) << text;
    EXPECT_NE(prompts.error().message.find(line), std::string::npos) << prompts.error().message;
  }
}

}  // namespace
}  // namespace werk::app::bench
