#include "werk/runtime/runtime_cache_fixture.hpp"

namespace werk::runtime {
namespace {

using namespace std::chrono_literals;

// An unload and what it came to.
struct Unload {
  std::optional<Result<std::size_t>> result;
  std::stop_source stop;
};

class RuntimeControlTest : public RuntimeCacheTest {
 protected:
  async::awaitable<void> run_unload(Unload& into, std::string model, UnloadHow how) {
    const ModelRuntimes which{model};
    auto result = co_await cache_->unload(which, how, into.stop.get_token());
    into.result.emplace(std::move(result));
  }
  Unload& unload(const std::string& model, UnloadHow how = UnloadHow::after_calls) {
    Unload& one = unloads_.emplace_back();
    start(run_unload(one, model, how));
    poll();
    return one;
  }
  RuntimeSnapshot shown(const std::string& model) {
    for (const RuntimeSnapshot& one : cache_->snapshot()) {
      if (one.model == model) return one;
    }
    return {};
  }

  std::deque<Unload> unloads_;
};

TEST_F(RuntimeControlTest, AnUnloadReturnsWhenItsCallsHaveEndedAndLaterOnesLoadItAgain) {
  make({}, 2);
  Caller& running = arrive("a");
  ready("a");
  Unload& one = unload("a");
  EXPECT_EQ(state("a"), RuntimeState::closing);
  Caller& late = arrive("a");
  EXPECT_FALSE(one.result);
  running.leave();
  poll();
  ASSERT_TRUE(one.result && *one.result);
  EXPECT_EQ(**one.result, 1u);
  EXPECT_EQ(engine_->starts("a"), 2u);
  ready("a");
  EXPECT_TRUE(late.admitted());
  EXPECT_EQ(state("a"), RuntimeState::ready);
}

TEST_F(RuntimeControlTest, WhatIsNotLoadedNeedsNoUnload) {
  make();
  EXPECT_EQ(**unload("a").result, 0u);
}

TEST_F(RuntimeControlTest, AnUnloadWhoseAskerLeavesGoesOn) {
  make();
  Caller& running = arrive("a");
  ready("a");
  Unload& one = unload("a");
  one.stop.request_stop();
  poll();
  ASSERT_TRUE(one.result);
  EXPECT_EQ(one.result->error().code, ErrorCode::cancelled);
  running.leave();
  poll();
  EXPECT_EQ(engine_->alive("a"), 0u);
}

TEST_F(RuntimeControlTest, AnUnloadNowTellsRunningAndWaitingCallsAtOnceEvenIfTheEngineHangs) {
  make({}, 1);
  Caller& running = arrive("a");
  engine_->hold_stops();
  ready("a");
  Caller& in_line = arrive("a");
  Caller& other = arrive("b");
  Unload& one = unload("a", UnloadHow::now);
  EXPECT_TRUE((*running.result)->lease.ended().stop_requested());
  EXPECT_EQ((*running.result)->lease.end_cause()->code, ErrorCode::unloaded);
  EXPECT_EQ(in_line.error(), ErrorCode::unloaded);
  EXPECT_FALSE(one.result) << "the engine has not ended yet";
  ready("b");
  EXPECT_TRUE(other.admitted()) << "a hung engine holds up nobody else";
  Caller& late = arrive("a");
  EXPECT_FALSE(late.result) << "and no second engine starts beside it";
  EXPECT_EQ(engine_->starts("a"), 1u);
  engine_->runtime("a").finish_stop();
  engine_->runtime("b").finish_stop();
  poll();
  EXPECT_EQ(**one.result, 1u);
  ready("a");
  EXPECT_TRUE(late.admitted());
  engine_->runtime("a").finish_stop();
}

TEST_F(RuntimeControlTest, AnUnloadNowOfAStartEndsItAndTellsWhoWaits) {
  make();
  Caller& waiting = arrive("a");
  Unload& one = unload("a", UnloadHow::now);
  EXPECT_EQ(waiting.error(), ErrorCode::unloaded);
  EXPECT_EQ(**one.result, 1u);
  EXPECT_EQ(engine_->alive("a"), 0u);
  EXPECT_EQ(engine_->starts("a"), 1u);
}

TEST_F(RuntimeControlTest, AnUnloadDuringAShutdownEndsWithIt) {
  make();
  arrive("a");
  ready("a");
  Unload& one = unload("a");
  cache_->begin_shutdown();
  cache_->stop_leased();
  poll();
  EXPECT_EQ(**one.result, 1u);
}

TEST_F(RuntimeControlTest, AFullPoolOfPinsRefusesAtOnceAndNamesThem) {
  make({.pools = {{"fake", {.capacity = 1}}}, .by_model = {{"a", {.pinned = Pinned::yes}}}});
  Caller& a = arrive("a");
  ready("a");
  a.leave();
  poll();
  Caller& b = arrive("b");
  ASSERT_EQ(b.error(), ErrorCode::capacity);
  EXPECT_NE(b.result->error().message.find("(a)"), std::string::npos);
  cache_->pin({"a"}, Pinned::no);
  poll();
  Caller& c = arrive("b");
  ready("b");
  EXPECT_TRUE(c.admitted());
}

TEST_F(RuntimeControlTest, APinBeforeTheLoadHoldsForIt) {
  make({.pools = {{"fake", {.capacity = 1}}}});
  cache_->pin({"a"}, Pinned::yes);
  arrive("a").leave();
  ready("a");
  EXPECT_EQ(shown("a").pinned, Pinned::yes);
  EXPECT_EQ(arrive("b").error(), ErrorCode::capacity);
  EXPECT_EQ(cache_->pools().at(0).pinned, 1u);
}

TEST_F(RuntimeControlTest, AnIdleRuntimeIsStoppedAfterItsTimeAndAUsedOneIsNot) {
  make({.idle_timeout = 60s});
  Caller& first = arrive("a");
  ready("a");
  advance(3600s);
  EXPECT_EQ(state("a"), RuntimeState::ready) << "a lease is no idleness";
  first.leave();
  poll();
  advance(59s);
  Caller& second = arrive("a");
  second.leave();
  poll();
  advance(59s);
  EXPECT_EQ(state("a"), RuntimeState::ready) << "the time counts from the last call's end";
  advance(1s);
  EXPECT_EQ(state("a"), RuntimeState::absent);
  EXPECT_EQ(clock_.pending(), 0u);
}

TEST_F(RuntimeControlTest, ALoadedModelThatNobodyCalledIsIdleFromItsReadiness) {
  make({.idle_timeout = 60s});
  Caller& impatient = arrive("a");
  impatient.stop.request_stop();
  poll();
  advance(120s);
  EXPECT_TRUE(engine_->starting("a")) << "a start isn't idle";
  ready("a");
  advance(60s);
  EXPECT_EQ(state("a"), RuntimeState::absent);
}

TEST_F(RuntimeControlTest, ModelsHaveIdleTimesOfTheirOwnAndPinsHaveNone) {
  make({.idle_timeout = 60s,
        .by_model = {{"slow", {.idle_timeout = 600s}}, {"never", {.idle_timeout = 0s}}}});
  cache_->pin({"pinned"}, Pinned::yes);
  for (const std::string model : {"a", "slow", "never", "pinned"}) {
    Caller& caller = arrive(model);
    ready(model);
    caller.leave();
    poll();
  }
  EXPECT_EQ(shown("slow").idle_timeout, 600s);
  EXPECT_EQ(shown("never").idle_timeout, std::nullopt);
  advance(60s);
  EXPECT_EQ(state("a"), RuntimeState::absent);
  EXPECT_EQ(state("slow"), RuntimeState::ready);
  advance(3600s);
  EXPECT_EQ(state("slow"), RuntimeState::absent);
  EXPECT_EQ(state("never"), RuntimeState::ready);
  EXPECT_EQ(state("pinned"), RuntimeState::ready);
  cache_->pin({"pinned"}, Pinned::no);
  advance(60s);
  EXPECT_EQ(state("pinned"), RuntimeState::absent) << "from then on the time counts";
}

TEST_F(RuntimeControlTest, SumsBelongToARuntimeAndBeginAnewWithTheNext) {
  make();
  Caller& first = arrive("a");
  EXPECT_EQ(shown("a").usage.calls, 0u);
  engine_->progress("a");
  EXPECT_EQ(shown("a").progress, "loading");
  ready("a");
  EXPECT_EQ(shown("a").progress, "");
  (*first.result)->lease.add_usage({.prompt_tokens_cached = 3, .output_tokens = 2});
  EXPECT_EQ(shown("a").usage.calls, 1u);
  EXPECT_EQ(shown("a").usage.prompt_tokens_cached, 3u);
  EXPECT_EQ(shown("a").usage.output_tokens, 2u);
  engine_->runtime("a").die("gone");
  poll();
  arrive("a");
  ready("a");
  EXPECT_EQ(shown("a").usage.prompt_tokens_cached, 0u);
}

TEST_F(RuntimeControlTest, APoolThatKeepsNothingServesModelsInOrderAndDropsEach) {
  make({.pools = {{"fake", {.capacity = 1, .capacity_wait = 3600s, .retention = Retention::drop}}}},
       1);
  Caller& first = arrive("a");
  ready("a");
  Caller& second = arrive("a");
  Caller& other = arrive("b");
  first.leave();
  poll();
  EXPECT_TRUE(second.admitted()) << "a call that waits for it keeps it";
  second.leave();
  poll();
  EXPECT_EQ(engine_->alive("a"), 0u);
  ready("b");
  EXPECT_TRUE(other.admitted());
  other.leave();
  poll();
  clock_.advance(1ms);
  poll();
  EXPECT_EQ(engine_->alive("b"), 0u);
}

TEST_F(RuntimeControlTest, APoolsRefusalNamesTheSettingThatRaisesIt) {
  make({.pools = {{"fake", {.capacity = 1, .capacity_wait = 0s, .setting = "WERK_SIZE"}}}});
  Caller& held = arrive("a");
  ready("a");
  Caller& refused = arrive("b");
  ASSERT_TRUE(refused.result);
  EXPECT_NE(refused.result->error().message.find("raise WERK_SIZE"), std::string::npos);
  held.leave();
}

TEST_F(RuntimeControlTest, AnEngineThatIsSilentToAllItsCallsIsReplacedAndWhoWaitsLosesNothing) {
  make({}, 2);
  Caller& first = arrive("a");
  ready("a");
  Caller& second = arrive("a");
  Caller& waiting = arrive("a");
  ASSERT_TRUE(second.admitted());
  advance(60s);
  const Lease& lease = (*first.result)->lease;
  lease.condemn_if_silent(30s);
  poll();
  EXPECT_TRUE(lease.ended().stop_requested());
  EXPECT_EQ(lease.end_cause()->code, ErrorCode::engine_timeout);
  first.leave();
  second.leave();
  poll();
  EXPECT_EQ(engine_->starts("a"), 2u);
  ready("a");
  EXPECT_TRUE(waiting.admitted());
}

TEST_F(RuntimeControlTest, AnEngineThatSpeaksToOneOfItsCallsIsNotReplacedForAnother) {
  make({}, 2);
  Caller& silent = arrive("a");
  ready("a");
  Caller& spoken_to = arrive("a");
  advance(60s);
  (*spoken_to.result)->lease.note_life(clock_.now());
  advance(29s);
  (*silent.result)->lease.condemn_if_silent(30s);
  poll();
  EXPECT_EQ(state("a"), RuntimeState::ready);
  EXPECT_FALSE((*silent.result)->lease.ended().stop_requested());
}

}  // namespace
}  // namespace werk::runtime
