// How many calls an engine has at once: as many as it has slots, never more. Seen by events:
// engines that hold their calls until so many have arrived, or until told.
#include <gtest/gtest.h>

#include "tests/e2e/test_node.hpp"

namespace werk::test {
namespace {

class OverlapOf : public ::testing::TestWithParam<std::size_t> {};

TEST_P(OverlapOf, CallsRunTogetherWhereTheEngineHasSoManySlots) {
  const std::size_t slots = GetParam();
  TestNode node(
      {.engine = {{"hold_until", slots}}, .arguments = {"--parallel", std::to_string(slots)}});
  std::vector<HttpCall> calls;
  for (std::size_t i = 0; i < slots; ++i) calls.push_back(node.chat("a"));
  for (HttpCall& call : calls) EXPECT_EQ(call.status(), 200) << call.whole_body();
  EXPECT_EQ(node.spawned(), 1u);
  EXPECT_EQ(node.engines().open_max(0), slots);
}

INSTANTIATE_TEST_SUITE_P(Slots, OverlapOf, ::testing::Values(2, 4));

TEST(Overlap, WithOneSlotTheSecondCallIsSentOnlyWhenTheFirstHasEnded) {
  TestNode node({.engine = {{"reply", {{"hold", true}}}}});
  HttpCall first = node.chat("a");
  const EngineEvent one = node.generation();
  HttpCall second = node.chat("a");
  node.await_waiting(1);
  const boost::json::object runtime = runtime_of(node.observability(), "a");
  EXPECT_EQ(number_in(runtime, "slots", "total"), 1u);
  EXPECT_EQ(number_in(runtime, "slots", "busy"), 1u);
  EXPECT_EQ(runtime.at("waiting").to_number<int>(), 1);
  EXPECT_EQ(node.generations(), 1u);
  node.engines().release(one.engine, one.request());
  EXPECT_EQ(first.status(), 200) << first.whole_body();
  const EngineEvent two = node.generation();
  node.engines().release(two.engine, two.request());
  EXPECT_EQ(second.status(), 200) << second.whole_body();
  EXPECT_EQ(node.engines().open_max(one.engine), 1u);
}

TEST(Overlap, MoreCallersThanSlotsAreAllServedWithoutEverFillingMoreThanTheSlots) {
  TestNode node({.arguments = {"--parallel", "2"}});
  const std::vector<int> statuses = run_callers(12, [&node](std::size_t) {
    HttpCall call = node.chat("a");
    call.whole_body();
    return call.status();
  });
  EXPECT_EQ(statuses, std::vector<int>(12, 200));
  EXPECT_LE(node.engines().open_max(0), 2u);
}

TEST(Overlap, ACallWithTwoChoicesWeighsTwoAndKeepsItsPlaceInTheLine) {
  TestNode node({.engine = {{"reply", {{"hold", true}}}}, .arguments = {"--parallel", "2"}});
  HttpCall single = node.chat("a");
  const EngineEvent first = node.generation();
  HttpCall heavy = node.chat("a", R"("n":2)");
  node.await_waiting(1);
  HttpCall late = node.chat("a");
  node.await_waiting(2);
  EXPECT_EQ(node.generations(), 1u) << "a slot is free, but not two, and nobody is overtaken";
  node.engines().release(first.engine, first.request());
  EXPECT_EQ(single.status(), 200);
  const EngineEvent second = node.generation();
  EXPECT_NE(second.text("body").find(R"("n":2)"), std::string::npos);
  node.await_waiting(1);
  EXPECT_EQ(number_in(runtime_of(node.observability(), "a"), "slots", "busy"), 2u);
  EXPECT_EQ(node.generations(), 2u);
  node.engines().release(second.engine, second.request());
  EXPECT_EQ(heavy.status(), 200);
  const EngineEvent third = node.generation();
  node.engines().release(third.engine, third.request());
  EXPECT_EQ(late.status(), 200);
}

TEST(Overlap, MoreChoicesThanSlotsAreRefusedWithTheReason) {
  TestNode node({.arguments = {"--parallel", "2"}});
  HttpCall call = node.chat("a", R"("n":3)");
  EXPECT_EQ(call.status(), 400);
  EXPECT_NE(call.whole_body().find("--parallel"), std::string::npos) << call.whole_body();
  EXPECT_EQ(node.generations(), 0u);
}

TEST(Overlap, ABusyModelHoldsUpNoOther) {
  TestNode node({.models = {{"busy"}, {"other"}},
                 .engine = {{"models", {{"models/busy/", {{"reply", {{"hold", true}}}}}}}}});
  HttpCall held = node.chat("busy");
  const EngineEvent generation = node.generation();
  HttpCall queued = node.chat("busy");
  node.await_waiting(1);
  HttpCall other = node.chat("other");
  EXPECT_EQ(other.status(), 200) << other.whole_body();
  node.engines().release(generation.engine, generation.request());
  EXPECT_EQ(held.status(), 200);
}

}  // namespace
}  // namespace werk::test
