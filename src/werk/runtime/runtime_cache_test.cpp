#include <random>

#include "werk/runtime/runtime_cache_fixture.hpp"

namespace werk::runtime {
namespace {

using namespace std::chrono_literals;

TEST_F(RuntimeCacheTest, ThirtyTwoCallersOfOneColdModelShareOneProcess) {
  make({}, 32);
  for (int i = 0; i < 32; ++i) arrive("a");
  EXPECT_EQ(engine_->starts("a"), 1u);
  ready("a");
  for (const Caller& caller : callers_) EXPECT_TRUE(caller.admitted());
  EXPECT_EQ(engine_->starts("a"), 1u);
}

TEST_F(RuntimeCacheTest, UnrelatedLoadsAndReadyModelsNeverWaitForALoad) {
  make();
  Caller& a = arrive("a");
  Caller& b = arrive("b");
  ready("b");
  EXPECT_TRUE(b.admitted());
  EXPECT_FALSE(a.result);
  Error broken{ErrorCode::start_failed, "no"};
  engine_->fail_start("a", broken);
  poll();
  EXPECT_EQ(a.error(), ErrorCode::start_failed);
  EXPECT_TRUE(b.admitted());
}

TEST_F(RuntimeCacheTest, AFailedStartGivesItsTenWaitersTheCauseOnceEach) {
  make();
  for (int i = 0; i < 10; ++i) arrive("a");
  engine_->fail_start("a", Error{ErrorCode::start_failed, "exit status 3"});
  poll();
  for (const Caller& caller : callers_) {
    ASSERT_EQ(caller.error(), ErrorCode::start_failed);
    EXPECT_EQ(caller.result->error().message, "exit status 3");
    EXPECT_EQ(caller.result->error().retry_after, 1s);
  }
  EXPECT_EQ(engine_->starts("a"), 1u);
}

TEST_F(RuntimeCacheTest, WhileItBacksOffTheLastCauseIsTheAnswerAndThenAStartIsTriedAgain) {
  make();
  arrive("a");
  engine_->fail_start("a", Error{ErrorCode::start_failed, "no memory"});
  poll();
  EXPECT_EQ(arrive("a").error(), ErrorCode::start_failed);
  EXPECT_EQ(engine_->starts("a"), 1u);
  advance(1s);
  arrive("a");
  EXPECT_EQ(engine_->starts("a"), 2u);
  engine_->fail_start("a", Error{ErrorCode::start_failed, "no memory"});
  poll();
  advance(1s);
  EXPECT_EQ(arrive("a").error(), ErrorCode::start_failed) << "the pause doubles";
  EXPECT_EQ(engine_->starts("a"), 2u);
  advance(1s);
  Caller& healed = arrive("a");
  ready("a");
  EXPECT_TRUE(healed.admitted());
}

TEST_F(RuntimeCacheTest, AFaultThatCannotPassCarriesNoRetryAfter) {
  make();
  Caller& caller = arrive("a");
  engine_->fail_start("a", Error{ErrorCode::model_unusable, "unknown architecture"});
  poll();
  EXPECT_EQ(caller.error(), ErrorCode::model_unusable);
  EXPECT_FALSE(caller.result->error().retry_after);
}

TEST_F(RuntimeCacheTest, ALoadWhoseWaiterLeftIsFinishedForTheNextOne) {
  make();
  Caller& impatient = arrive("a");
  impatient.stop.request_stop();
  poll();
  EXPECT_EQ(impatient.error(), ErrorCode::cancelled);
  EXPECT_TRUE(engine_->starting("a"));
  ready("a");
  EXPECT_TRUE(arrive("a").admitted());
  EXPECT_EQ(engine_->starts("a"), 1u);
}

TEST_F(RuntimeCacheTest, AStartWithoutProgressIsGivenUpAndOneWithProgressIsNot) {
  make();
  Caller& a = arrive("a");
  advance(299s);
  engine_->progress("a");
  advance(299s);
  EXPECT_FALSE(a.result);
  advance(1s);
  EXPECT_EQ(a.error(), ErrorCode::start_failed);
  EXPECT_NE(a.result->error().message.find("--start-timeout"), std::string::npos);
  EXPECT_EQ(engine_->alive("a"), 0u);
}

TEST_F(RuntimeCacheTest, WithOneSlotTheSecondCallWaitsInWerkUntilTheFirstHasEnded) {
  make();
  Caller& first = arrive("a");
  ready("a");
  Caller& second = arrive("a");
  EXPECT_TRUE(first.admitted());
  EXPECT_FALSE(second.result);
  first.leave();
  poll();
  EXPECT_TRUE(second.admitted());
}

TEST_F(RuntimeCacheTest, ACallThatLeavesWhileItWaitsForASlotNeverRunsAndHoldsNothing) {
  make();
  Caller& first = arrive("a");
  ready("a");
  Caller& second = arrive("a");
  Caller& third = arrive("a");
  second.stop.request_stop();
  poll();
  EXPECT_EQ(second.error(), ErrorCode::cancelled);
  first.leave();
  poll();
  EXPECT_TRUE(third.admitted());
}

TEST_F(RuntimeCacheTest,
       AQuarantinedPermitIsFreeOnceTheEngineIsSeenIdleAndIsAskedForAtMostTwiceASecond) {
  make();
  Caller& first = arrive("a");
  ready("a");
  test::FakeRuntime& runtime = engine_->runtime("a");
  runtime.native_busy(1);
  Caller& second = arrive("a");
  (*first.result)->permit.quarantine();
  first.leave();
  poll();
  EXPECT_FALSE(second.result);
  advance(50ms);
  EXPECT_EQ(runtime.busy_asked(), 1u);
  advance(499ms);
  EXPECT_EQ(runtime.busy_asked(), 1u);
  advance(1ms);
  EXPECT_EQ(runtime.busy_asked(), 2u);
  EXPECT_FALSE(second.result);
  runtime.native_busy(0);
  advance(500ms);
  EXPECT_TRUE(second.admitted());
  advance(10s);
  EXPECT_EQ(runtime.busy_asked(), 3u) << "nothing is asked once all is free";
}

TEST_F(RuntimeCacheTest, ADeadEngineIsReplacedOnTheNextCall) {
  make();
  Caller& first = arrive("a");
  ready("a");
  engine_->runtime("a").die("killed by SIGKILL");
  poll();
  Caller& second = arrive("a");
  EXPECT_EQ(engine_->starts("a"), 2u);
  first.leave();
  poll();
  ready("a");
  EXPECT_TRUE(second.admitted());
}

TEST_F(RuntimeCacheTest, ACallThatWaitsForASlotOfADyingEngineGetsOneOfTheNext) {
  make();
  arrive("a");
  ready("a");
  Caller& second = arrive("a");
  engine_->runtime("a").die("killed by SIGKILL");
  poll();
  EXPECT_FALSE(second.result);
  EXPECT_EQ(engine_->starts("a"), 2u);
  ready("a");
  EXPECT_TRUE(second.admitted());
}

TEST_F(RuntimeCacheTest, ADeathIsSettledBeforeTheNextCallCanMeetTheCorpse) {
  make();
  Caller& first = arrive("a");
  ready("a");
  bool dead = false;
  start(settle((*first.result)->lease, dead));
  poll();
  engine_->runtime("a").die("exit status 1");
  poll();
  EXPECT_TRUE(dead);
  EXPECT_EQ(state("a"), RuntimeState::absent);
}

TEST_F(RuntimeCacheTest, AnEngineThatSaysItIsDeadIsReplacedThoughItsProcessLivesOn) {
  make();
  Caller& first = arrive("a");
  ready("a");
  engine_->runtime("a").core_died();
  bool dead = false;
  start(settle((*first.result)->lease, dead));
  poll();
  advance(200ms);
  EXPECT_TRUE(dead);
  EXPECT_EQ((*first.result)->lease.end_cause()->code, ErrorCode::engine_failed);
  first.leave();
  poll();
  Caller& second = arrive("a");
  EXPECT_EQ(engine_->starts("a"), 2u);
  ready("a");
  EXPECT_TRUE(second.admitted());
}

TEST_F(RuntimeCacheTest, AtCapacityOneALongCallIsFinishedBeforeTheOtherModelRuns) {
  make({.pools = {{"fake", {.capacity = 1}}}});
  Caller& a = arrive("a");
  ready("a");
  Caller& b = arrive("b");
  advance(10s);
  EXPECT_EQ(state("a"), RuntimeState::closing);
  EXPECT_EQ(engine_->starts("b"), 0u);
  Caller& late = arrive("a");
  a.leave();
  poll();
  EXPECT_EQ(engine_->alive("a"), 0u);
  ready("b");
  EXPECT_TRUE(b.admitted());
  EXPECT_FALSE(late.result);
  b.leave();
  poll();
  ready("a");
  EXPECT_TRUE(late.admitted());
}

TEST_F(RuntimeCacheTest, AWaitForAPlaceIsBoundedAndSaysWhatToDo) {
  make({.pools = {{"fake", {.capacity = 1}}}, .capacity_wait = 60s, .fair_turn = 1000s});
  arrive("a");
  ready("a");
  Caller& b = arrive("b");
  advance(59s);
  EXPECT_FALSE(b.result);
  advance(1s);
  EXPECT_EQ(b.error(), ErrorCode::capacity);
  EXPECT_TRUE(b.result->error().retry_after);
}

TEST_F(RuntimeCacheTest, TheWaitForAPlaceDoesNotCutALoadThatHasBegun) {
  make({.pools = {{"fake", {.capacity = 1}}}, .capacity_wait = 60s});
  Caller& b = arrive("b");
  advance(200s);
  EXPECT_FALSE(b.result);
  ready("b");
  EXPECT_TRUE(b.admitted());
}

TEST_F(RuntimeCacheTest, WithoutACapacityWaitAFullPoolRefusesAtOnce) {
  make({.pools = {{"fake", {.capacity = 1}}}, .capacity_wait = 0s});
  arrive("a");
  ready("a");
  EXPECT_EQ(arrive("b").error(), ErrorCode::capacity);
}

TEST_F(RuntimeCacheTest, TwoModelsThatArriveTogetherAtAnIdleOneAreBothServed) {
  make({.pools = {{"fake", {.capacity = 1}}}});
  for (int round = 0; round < 200; ++round) {
    Caller& a = arrive("a");
    if (engine_->starting("a")) ready("a");
    ASSERT_TRUE(a.admitted()) << "round " << round;
    a.leave();
    poll();
    Caller& b = arrive("b");
    Caller& c = arrive("c");
    ready("b");
    ASSERT_TRUE(b.admitted());
    b.leave();
    poll();
    ready("c");
    ASSERT_TRUE(c.admitted());
    c.leave();
    poll();
  }
}

TEST_F(RuntimeCacheTest, AFullLineIsRefusedWithRetryAfter) {
  make({.waiting_max = 2});
  arrive("a");
  arrive("a");
  Caller& third = arrive("a");
  EXPECT_EQ(third.error(), ErrorCode::queue_full);
  EXPECT_TRUE(third.result->error().retry_after);
}

TEST_F(RuntimeCacheTest, MoreChoicesThanSlotsAreRefusedByName) {
  make({}, 2);
  Caller& caller = arrive("a", 3);
  ready("a");
  EXPECT_EQ(caller.error(), ErrorCode::unsupported);
  EXPECT_EQ(caller.result->error().param, "n");
}

TEST_F(RuntimeCacheTest, AShutdownDuringALoadReapsItRefusesEveryWaiterAndStartsNothing) {
  make();
  Caller& running = arrive("a");
  ready("a");
  Caller& queued = arrive("a");
  Caller& loading = arrive("b");
  cache_->begin_shutdown();
  poll();
  EXPECT_EQ(loading.error(), ErrorCode::draining);
  EXPECT_EQ(queued.error(), ErrorCode::draining);
  EXPECT_EQ(engine_->alive("b"), 0u);
  EXPECT_EQ(engine_->alive("a"), 1u) << "a running call drains";
  EXPECT_EQ(arrive("c").error(), ErrorCode::draining);
  EXPECT_EQ(engine_->starts("c"), 0u);
  running.leave();
  poll();
  EXPECT_EQ(engine_->alive("a"), 0u);
}

TEST_F(RuntimeCacheTest, ALoadThatBecomesReadyWhileItIsBeingStoppedIsStillReaped) {
  make();
  arrive("b");
  engine_->finish_start("b");
  cache_->begin_shutdown();
  poll();
  EXPECT_EQ(engine_->alive("b"), 0u);
}

TEST_F(RuntimeCacheTest, RandomTrafficWithCancelsDeathsAndFailuresLosesNobody) {
  const std::uint64_t seed = std::random_device{}();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937_64 random(seed);
  make({.pools = {{"fake", {.capacity = 2}}}, .capacity_wait = 1000s, .idle_timeout = 5s}, 2);
  const std::vector<std::string> models = {"a", "b", "c", "d"};
  for (int step = 0; step < 1500; ++step) {
    const std::string& model = models[random() % models.size()];
    switch (random() % 10) {
      case 0:
      case 1:
      case 2: arrive(model); break;
      case 3:
        if (!callers_.empty()) callers_[random() % callers_.size()].stop.request_stop();
        break;
      case 4:
        if (engine_->starting(model))
          random() % 4 == 0 ? engine_->fail_start(model, Error{}) : engine_->finish_start(model);
        break;
      case 5:
        if (state(model) == RuntimeState::ready && engine_->alive(model) == 1 &&
            random() % 4 == 0) {
          engine_->runtime(model).die("gone");
        }
        break;
      case 6: advance(std::chrono::milliseconds(random() % 3000)); break;
      case 7:
        start(unload_some(model, random() % 3 == 0 ? UnloadHow::now : UnloadHow::after_calls));
        break;
      case 8: cache_->pin({model}, random() % 4 == 0 ? Pinned::yes : Pinned::no); break;
      default:
        if (!callers_.empty()) callers_[random() % callers_.size()].leave();
    }
    poll();
    while (callers_.size() > 40) {
      if (!callers_.front().done) break;
      callers_.pop_front();
    }
  }
  // Let everything come to its end: every caller must have been answered.
  for (int round = 0; round < 200; ++round) {
    for (Caller& caller : callers_) caller.leave();
    for (const std::string& model : models) {
      if (engine_->starting(model)) engine_->finish_start(model);
    }
    advance(3s);
  }
  for (const Caller& caller : callers_) EXPECT_TRUE(caller.done) << "a caller was never answered";
  EXPECT_EQ(cache_->waiting(), 0u);
}

}  // namespace
}  // namespace werk::runtime
