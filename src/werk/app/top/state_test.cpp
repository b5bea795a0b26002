#include "werk/app/top/state.hpp"

#include <gtest/gtest.h>

#include <boost/json/object.hpp>
#include <boost/json/parse.hpp>
#include <fstream>
#include <iterator>
#include <set>

#include "werk/app/top/pages_fixture.hpp"
#include "werk/app/top/report.hpp"

namespace werk::app::top {
namespace {

using namespace std::chrono_literals;
namespace json = boost::json;

TEST(TopState, EverythingThatANodeTellsIsRead) {
  const State state = state_of(full_page());
  EXPECT_EQ(state.node.version, "0.1.0");
  EXPECT_EQ(state.node.uptime_s, 4800.0);
  EXPECT_EQ(state.node.ready, true);
  ASSERT_EQ(state.runtimes.size(), 3u);
  const Runtime& coder = state.runtimes[0];
  EXPECT_EQ(coder.slots_total, 4u);
  EXPECT_EQ(coder.slots_busy, 1u);
  EXPECT_EQ(coder.tokens.prompt, 1000u) << "new ones and those from the cache";
  EXPECT_EQ(cached_share(coder.tokens), 0.63);
  EXPECT_EQ(coder.age_s, 42.0);
  EXPECT_EQ(coder.output_tokens_per_second, 81.25);
  ASSERT_EQ(state.calls.size(), 3u);
  EXPECT_EQ(state.calls[0].phase, "generating");
  EXPECT_EQ(tokens_per_second(state.calls[0]), 40.0);
  EXPECT_FALSE(tokens_per_second(state.calls[2])) << "a prompt generates nothing";
  ASSERT_EQ(state.recent.size(), 1u);
  EXPECT_EQ(state.recent[0].cause, "capacity");
  EXPECT_EQ(state.recent[0].status, 503u);
}

TEST(TopState, WhatNobodyKnowsIsAbsentAndNotZero) {
  const State state = state_of(full_page());
  const Runtime& far = state.runtimes[2];
  EXPECT_FALSE(far.slots_total);
  EXPECT_FALSE(far.memory_bytes);
  EXPECT_FALSE(far.tokens.cached);
  EXPECT_EQ(far.tokens.prompt, 900u);
  EXPECT_FALSE(cached_share(far.tokens)) << "an engine that doesn't tell has no share of nothing";
  const Totals totals = totals_of(state);
  EXPECT_EQ(totals.slots, 4u);
  EXPECT_EQ(totals.slots_busy, 1u) << "calls elsewhere take no slot of ours";
  EXPECT_EQ(totals.cached_share, 0.63);
  EXPECT_EQ(totals.output_tokens_per_second, 85.75);
  EXPECT_EQ(totals.memory_bytes, 6'600'000'000u);
}

TEST(TopState, APageOfAnOlderNodeIsReadAsFarAsItGoes) {
  const State state = state_of(old_page());
  EXPECT_EQ(state.node.uptime_s, 90.0) << "from the time of its start";
  EXPECT_FALSE(state.node.loop_lag_s);
  EXPECT_FALSE(state.node.ready);
  ASSERT_EQ(state.runtimes.size(), 1u);
  EXPECT_FALSE(state.runtimes[0].memory_bytes);
  EXPECT_FALSE(state.runtimes[0].output_tokens_per_second);
  EXPECT_TRUE(lacks_rates(state));
  EXPECT_FALSE(lacks_rates(state_of(full_page())));
}

TEST(TopState, AgesAreThoseOfTheNodesClockWhereItTells) {
  const auto an_hour_late = read_state(full_page(), page_time() + 1h);
  ASSERT_TRUE(an_hour_late);
  EXPECT_EQ(an_hour_late->runtimes[0].age_s, 42.0);
  const auto old = read_state(old_page(), page_time() - 1h);
  ASSERT_TRUE(old);
  EXPECT_EQ(old->runtimes[0].age_s, 0.0) << "an age is never less than nothing";
}

TEST(TopState, RatesFollowFromTwoPagesWhereTheNodeDoesNotTellThem) {
  const State before = state_of(old_page());
  State now = before;
  now.runtimes[0].tokens.output = 130;
  add_rates(now, before, 2s);
  EXPECT_EQ(now.runtimes[0].output_tokens_per_second, 15.0);
  State told = state_of(full_page());
  add_rates(told, state_of(full_page()), 1s);
  EXPECT_EQ(told.runtimes[0].output_tokens_per_second, 81.25) << "what the node says wins";
  EXPECT_FALSE(told.runtimes[1].output_tokens_per_second) << "also where it says there was nothing";
}

TEST(TopState, ARuntimeThatWasStartedAnewHasNoRateYet) {
  const State before = state_of(old_page());
  State fewer = before;
  fewer.runtimes[0].tokens.output = 3;
  add_rates(fewer, before, 1s);
  EXPECT_FALSE(fewer.runtimes[0].output_tokens_per_second);
  State another = before;
  another.runtimes[0].pid = 9;
  another.runtimes[0].tokens.output = 300;
  add_rates(another, before, 1s);
  EXPECT_FALSE(another.runtimes[0].output_tokens_per_second);
  State at_once = before;
  add_rates(at_once, before, 0s);
  EXPECT_FALSE(at_once.runtimes[0].output_tokens_per_second);
}

TEST(TopState, WhatIsNoPageOfANodeIsRefused) {
  for (const std::string_view page : {"", "hello", "[]", "{}", R"({"error":{"message":"no"}})"})
    EXPECT_FALSE(read_state(page, page_time())) << page;
}

TEST(TopState, MembersOfAnotherTypeAreAsIfTheyWereNotThere) {
  const State state = state_of(R"({"node":7,"runtimes":[3,{"model":5,"slots":"many","pid":-1,
    "memory_bytes":1.5e30,"load_seconds":-1,"pinned":"yes"}],"pools":{},"calls":[],"pins":[1],
    "active_calls":[null],"recent_calls":"none"})");
  ASSERT_EQ(state.runtimes.size(), 1u);
  EXPECT_EQ(state.runtimes[0].model, "");
  EXPECT_FALSE(state.runtimes[0].slots_total);
  EXPECT_FALSE(state.runtimes[0].pid);
  EXPECT_FALSE(state.runtimes[0].memory_bytes);
  EXPECT_FALSE(state.runtimes[0].load_seconds);
  EXPECT_FALSE(state.runtimes[0].pinned);
  EXPECT_TRUE(state.calls.empty());
  EXPECT_TRUE(state.pins.empty());
}

json::object report_of(const std::string& page) {
  return json::parse(json_report(state_of(page), "http://node")).as_object();
}

TEST(TopReport, HoldsWhatTheScreenShowsWithNullForWhatIsNotKnown) {
  const json::object report = report_of(full_page());
  EXPECT_EQ(report.at("address").as_string(), "http://node");
  EXPECT_EQ(report.at("totals").at("cached_share").as_double(), 0.63);
  const json::object& coder = report.at("runtimes").at(0).as_object();
  EXPECT_EQ(coder.at("slots").to_number<int>(), 4);
  EXPECT_EQ(coder.at("output_tokens_per_second").as_double(), 81.25);
  const json::object& far = report.at("runtimes").at(2).as_object();
  EXPECT_TRUE(far.at("slots").is_null());
  EXPECT_TRUE(far.at("memory_bytes").is_null());
  EXPECT_TRUE(far.at("cached_share").is_null());
  EXPECT_EQ(report.at("calls").at(0).at("phase").as_string(), "generating");
  EXPECT_EQ(report.at("recent_calls").at(0).at("status").to_number<int>(), 503);
}

TEST(TopReport, HasTheSameMembersForEveryNode) {
  const auto members = [](const json::value& value) {
    std::set<std::string> names;
    for (const auto& member : value.as_object()) names.emplace(member.key());
    return names;
  };
  const json::object full = report_of(full_page());
  const json::object old = report_of(old_page());
  EXPECT_EQ(members(full), members(old));
  EXPECT_EQ(members(full.at("node")), members(old.at("node")));
  EXPECT_EQ(members(full.at("totals")), members(old.at("totals")));
  EXPECT_EQ(members(full.at("runtimes").at(0)), members(old.at("runtimes").at(0)));
}

void expect_documented(const json::value& value, const std::string& document) {
  if (value.is_array()) {
    for (const json::value& item : value.get_array()) expect_documented(item, document);
  }
  if (!value.is_object()) return;
  for (const auto& member : value.get_object()) {
    const std::string name(member.key());
    const bool known = document.find("`" + name + "`") != std::string::npos ||
                       document.find("`" + name + "[]`") != std::string::npos;
    EXPECT_TRUE(known) << name;
    expect_documented(member.value(), document);
  }
}

TEST(TopReport, EveryMemberIsDocumented) {
  std::ifstream file(std::string(WERK_DOCUMENTS) + "/top.md");
  ASSERT_TRUE(file.is_open());
  const std::string document{std::istreambuf_iterator<char>(file), {}};
  expect_documented(report_of(full_page()), document);
}

}  // namespace
}  // namespace werk::app::top
