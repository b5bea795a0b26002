#include "werk/gateway/calls.hpp"

#include <gtest/gtest.h>

#include <optional>

#include "tests/support/manual_clock.hpp"
#include "werk/gateway/call_pages.hpp"

namespace werk::gateway {
namespace {

using namespace std::chrono_literals;

constexpr std::string_view kChat = "/v1/chat/completions";

routing::SharedRoute way_of(const std::string& model) {
  routing::Route route;
  route.plan.manifest.id = model;
  return std::make_shared<const routing::Route>(std::move(route));
}

class CallsTest : public ::testing::Test {
 protected:
  const telemetry::Metrics::OfModel& model(std::string_view name) {
    const auto found = recorder_.metrics().models().find(name);
    EXPECT_NE(found, recorder_.metrics().models().end()) << name;
    return found->second;
  }

  test::ManualClock clock_;
  telemetry::Recorder recorder_;
  Calls calls_{clock_, recorder_};
};

TEST_F(CallsTest, ACallIsAtOneThingAfterTheOther) {
  Call call(calls_, "a", kChat);
  EXPECT_EQ(call.phase(), Call::Phase::reading);
  clock_.advance(1s);
  call.waits_for(runtime::WaitFor::place);
  EXPECT_EQ(call.phase(), Call::Phase::place);
  clock_.advance(2s);
  call.waits_for(runtime::WaitFor::load);
  EXPECT_EQ(call.phase(), Call::Phase::loading);
  call.waits_for(runtime::WaitFor::slot);
  EXPECT_EQ(call.phase(), Call::Phase::slot);
  call.admitted();
  EXPECT_EQ(call.phase(), Call::Phase::prompt);
  clock_.advance(3s);
  EXPECT_EQ(call.piece(0, clock_.now()), 0u);
  EXPECT_EQ(call.phase(), Call::Phase::prompt);
  EXPECT_EQ(call.piece(2, clock_.now()), 2u);
  EXPECT_EQ(call.phase(), Call::Phase::generating);
  clock_.advance(1s);
  const ActiveCalls shown = active_calls(calls_);
  ASSERT_EQ(shown.list.size(), 1u);
  EXPECT_EQ(shown.list.front().at("phase").as_string(), "generating");
  EXPECT_EQ(shown.list.front().at("age_s").as_double(), 7.0);
  EXPECT_EQ(shown.list.front().at("phase_s").as_double(), 1.0);
  EXPECT_EQ(shown.list.front().at("output_tokens").as_uint64(), 2u);
}

TEST_F(CallsTest, WhatACallWaitedIsKnownAlsoWhereItWasRefusedMeanwhile) {
  {
    Call call(calls_, "a", kChat);
    clock_.advance(1s);
    call.waits_for(runtime::WaitFor::place);
    clock_.advance(2s);
    call.waits_for(runtime::WaitFor::load);
    clock_.advance(3s);
    call.waits_for(runtime::WaitFor::slot);
    clock_.advance(5s);
    call.failed(Error{ErrorCode::capacity, "full"});
    clock_.advance(7s);  // a client that reads the error slowly waits for nothing of ours
  }
  EXPECT_EQ(calls_.recent().back().load_time, 5s);
  EXPECT_EQ(calls_.recent().back().permit_time, 5s);
  {
    Call call(calls_, "b", kChat);
    call.waits_for(runtime::WaitFor::load);
    clock_.advance(1s);
    call.waits_for(runtime::WaitFor::slot);
    call.waits_for(runtime::WaitFor::load);  // its runtime died as it stood in the line
    clock_.advance(1s);
    call.waits_for(runtime::WaitFor::slot);
    call.admitted();
    clock_.advance(10s);
    call.ended(Call::Outcome::served);
  }
  EXPECT_EQ(calls_.recent().back().load_time, 2s);
  EXPECT_EQ(calls_.recent().back().permit_time, 0s);
}

TEST_F(CallsTest, TimeBetweenPiecesIsSharedAmongTheTokensOfAPiece) {
  {
    Call call(calls_, "a", kChat);
    call.routed(way_of("small"));
    call.admitted();
    call.piece(1, clock_.now());
    clock_.advance(40ms);
    call.piece(3, clock_.now());
    clock_.advance(200ms);
    call.piece(4, clock_.now());
    call.ended(Call::Outcome::served);
  }
  const telemetry::Histogram& pieces = model("small").inter_token;
  EXPECT_NEAR(pieces.sum(), 0.24, 1e-9);
  std::uint64_t count = 0;
  for (std::size_t i = 0; i <= pieces.bounds().size(); ++i) count += pieces.in_range(i);
  EXPECT_EQ(count, 3u);
}

TEST_F(CallsTest, EveryCallIsCountedOnceWhateverItCameTo) {
  for (const auto outcome :
       {Call::Outcome::served, Call::Outcome::failed, Call::Outcome::cancelled}) {
    Call call(calls_, "a", kChat);
    call.routed(way_of("small"));
    call.ended(outcome);
    EXPECT_EQ(calls_.counters().active, 1u);
  }
  EXPECT_EQ(calls_.counters().active, 0u);
  EXPECT_EQ(calls_.counters().served, 1u);
  EXPECT_EQ(calls_.counters().failed, 1u);
  EXPECT_EQ(calls_.counters().cancelled, 1u);
  EXPECT_EQ(model("small").calls.size(), 3u);
  EXPECT_EQ(recorder_.metrics().cancelled().at(Call::Phase::reading), 1u);
}

TEST_F(CallsTest, WhatAClientCallsAModelIsNoLabel) {
  for (int i = 0; i < 1000; ++i) {
    Call call(calls_, "a", kChat);
    call.model = "made-up-" + std::to_string(i);
    call.failed(Error{ErrorCode::model_not_found, "", Origin::client});
  }
  EXPECT_EQ(recorder_.metrics().models().size(), 1u);
  EXPECT_EQ(model("other").calls.size(), 1u);
  EXPECT_EQ(calls_.recent().back().model, "made-up-999");
}

TEST_F(CallsTest, TheLastCallsAreKeptNewestFirstAndNoMore) {
  for (std::size_t i = 0; i < Calls::kRecentMax + 5; ++i) {
    Call call(calls_, std::to_string(i), kChat);
    call.ended(Call::Outcome::served);
  }
  const auto shown = recent_calls(calls_);
  ASSERT_EQ(shown.size(), Calls::kRecentMax);
  EXPECT_EQ(shown.front().at("id").as_string(), "68");
  EXPECT_EQ(shown.back().at("id").as_string(), "5");
}

TEST_F(CallsTest, OfManyActiveCallsTheOldestAreShownAndTheOthersCounted) {
  std::list<Call> all;
  for (std::size_t i = 0; i < kActiveCallsMax + 7; ++i)
    all.emplace_back(calls_, std::to_string(i), kChat);
  const ActiveCalls shown = active_calls(calls_);
  EXPECT_EQ(shown.list.size(), kActiveCallsMax);
  EXPECT_EQ(shown.left_off, 7u);
  EXPECT_EQ(shown.list.front().at("id").as_string(), "0");
}

TEST_F(CallsTest, ALongNameIsCutShort) {
  Call call(calls_, "a", kChat);
  call.model = std::string(100'000, 'x');
  EXPECT_LE(call.shown_model().size(), 200u);
}

TEST_F(CallsTest, TokensOfAPromptThatWasOnlyCountedAreNoTokensIn) {
  {
    Call call(calls_, "a", "/v1/messages/count_tokens");
    call.routed(way_of("small"));
    call.counting();
    call.prompt_tokens = 500;
    call.ended(Call::Outcome::served);
  }
  EXPECT_EQ(model("small").prompt_tokens, 0u);
  EXPECT_EQ(model("small").calls.begin()->first.dialect, telemetry::Dialect::anthropic);
}

TEST_F(CallsTest, FollowersAreToldOfAdmittedRefusedAndFinishedCalls) {
  telemetry::EventFollower follower(recorder_.events(), std::nullopt, [] {});
  {
    Call call(calls_, "a", kChat);
    call.routed(way_of("small"));
    call.admitted();
    EXPECT_EQ(follower.next()->type, "call.admitted");
    call.ended(Call::Outcome::served);
  }
  EXPECT_EQ(follower.next()->type, "call.finished");
  {
    Call call(calls_, "b", kChat);
    call.failed(Error{ErrorCode::capacity, "full"});
    call.status = 503;
  }
  const telemetry::Event* refused = follower.next();
  EXPECT_EQ(refused->type, "call.refused");
  EXPECT_NE(refused->data.find(R"("cause":"capacity")"), std::string::npos);
}

}  // namespace
}  // namespace werk::gateway
