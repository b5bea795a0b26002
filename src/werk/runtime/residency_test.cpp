#include "werk/runtime/residency.hpp"

#include <gtest/gtest.h>

namespace werk::runtime {
namespace {

using Kind = Effect::Kind;
using Effects = Residency::Effects;

TEST(Residency, CallersOfOneColdKeyShareOneStart) {
  Residency pool(0, WhenFull::wait);
  EXPECT_EQ(pool.arrive(1, 7), (Effects{{Kind::start, 7}}));
  EXPECT_TRUE(pool.arrive(2, 7).empty());
  EXPECT_EQ(pool.ready(7), (Effects{{Kind::grant, 7, 1}, {Kind::grant, 7, 2}}));
  EXPECT_EQ(pool.arrive(3, 7), (Effects{{Kind::grant, 7, 3}}));
}

TEST(Residency, AFailedStartRejectsItsWaitersAndNobodyElse) {
  Residency pool(0, WhenFull::wait);
  pool.arrive(1, 7);
  pool.arrive(2, 8);
  EXPECT_EQ(pool.failed(7), (Effects{{Kind::reject_failed, 7, 1}}));
  EXPECT_EQ(pool.ready(8), (Effects{{Kind::grant, 8, 2}}));
}

TEST(Residency, ALoadGoesOnWhenItsWaitersLeave) {
  Residency pool(1, WhenFull::wait);
  pool.arrive(1, 7);
  EXPECT_TRUE(pool.cancel(1).empty());
  EXPECT_EQ(pool.state(7), RuntimeState::starting);
  EXPECT_TRUE(pool.ready(7).empty());
  EXPECT_EQ(pool.state(7), RuntimeState::ready);
}

TEST(Residency, TheLeastRecentlyUsedIdleRuntimeGivesWay) {
  Residency pool(2, WhenFull::wait);
  pool.arrive(1, 7);
  pool.ready(7);
  pool.arrive(2, 8);
  pool.ready(8);
  pool.release(1);
  pool.release(2);
  pool.arrive(3, 7);
  pool.release(3);
  EXPECT_EQ(pool.arrive(4, 9), (Effects{{Kind::stop, 8}}));
  EXPECT_EQ(pool.stopped(8), (Effects{{Kind::start, 9}}));
}

TEST(Residency, WhenEveryRuntimeIsPinnedTheAnswerIsACapacityErrorOrAWait) {
  Residency refusing(1, WhenFull::refuse);
  refusing.arrive(1, 7);
  refusing.ready(7);
  EXPECT_EQ(refusing.arrive(2, 8), (Effects{{Kind::reject_capacity, 8, 2}}));
  Residency waiting(1, WhenFull::wait);
  waiting.arrive(1, 7);
  waiting.ready(7);
  EXPECT_TRUE(waiting.arrive(2, 8).empty());
  EXPECT_EQ(waiting.blocked_head(), 2u);
  EXPECT_EQ(waiting.release(1), (Effects{{Kind::stop, 7}}));
}

TEST(Residency, AHeadThatHasWaitedItsTurnClosesABusyRuntime) {
  Residency pool(1, WhenFull::wait);
  pool.arrive(1, 7);
  pool.ready(7);
  pool.arrive(2, 8);
  EXPECT_TRUE(pool.turn().empty());
  EXPECT_EQ(pool.state(7), RuntimeState::closing);
  EXPECT_TRUE(pool.arrive(3, 7).empty()) << "new calls queue as for an absent key";
  EXPECT_EQ(pool.release(1), (Effects{{Kind::stop, 7}}));
  EXPECT_EQ(pool.stopped(7), (Effects{{Kind::start, 8}}));
  EXPECT_EQ(pool.ready(8), (Effects{{Kind::grant, 8, 2}}));
  EXPECT_EQ(pool.release(2), (Effects{{Kind::stop, 8}}));
}

TEST(Residency, AClosingRuntimeReopensWhenTheHeadLeaves) {
  Residency pool(1, WhenFull::wait);
  pool.arrive(1, 7);
  pool.ready(7);
  pool.arrive(2, 8);
  pool.turn();
  pool.arrive(3, 7);
  EXPECT_EQ(pool.cancel(2), (Effects{{Kind::grant, 7, 3}}));
  EXPECT_EQ(pool.state(7), RuntimeState::ready);
}

TEST(Residency, ADeadRuntimeIsStartedAnewWhileItsLastLeasesAreStillOut) {
  Residency pool(1, WhenFull::wait);
  pool.arrive(1, 7);
  pool.ready(7);
  EXPECT_TRUE(pool.exited(7).empty());
  EXPECT_EQ(pool.arrive(2, 7), (Effects{{Kind::start, 7}}));
  EXPECT_TRUE(pool.release(1).empty());
  EXPECT_EQ(pool.ready(7), (Effects{{Kind::grant, 7, 2}}));
}

TEST(Residency, AnUnloadLetsCallsFinishAndServesLaterOnesByTheNextStart) {
  Residency pool(1, WhenFull::wait);
  pool.arrive(1, 7);
  pool.ready(7);
  EXPECT_TRUE(pool.unload(7).empty());
  EXPECT_TRUE(pool.arrive(2, 7).empty());
  EXPECT_EQ(pool.release(1), (Effects{{Kind::stop, 7}}));
  EXPECT_EQ(pool.stopped(7), (Effects{{Kind::start, 7}}));
  EXPECT_EQ(pool.ready(7), (Effects{{Kind::grant, 7, 2}}));
  EXPECT_EQ(pool.state(7), RuntimeState::ready) << "the unload is done";
}

TEST(Residency, AnUnloadDuringAStartServesItsWaitersAndEndsItWhenTheyLeave) {
  Residency pool(0, WhenFull::wait);
  pool.arrive(1, 7);
  EXPECT_TRUE(pool.unload(7).empty());
  EXPECT_EQ(pool.ready(7), (Effects{{Kind::grant, 7, 1}}));
  EXPECT_EQ(pool.state(7), RuntimeState::closing);
  pool.arrive(2, 8);
  pool.unload(8);
  EXPECT_EQ(pool.cancel(2), (Effects{{Kind::stop, 8}}));
}

TEST(Residency, AnUnloadWhoseCallsNeverEndHoldsUpNoFairTurn) {
  Residency pool(2, WhenFull::wait);
  pool.arrive(1, 7);
  pool.ready(7);
  pool.arrive(2, 8);
  pool.ready(8);
  pool.unload(7);
  pool.arrive(3, 9);
  EXPECT_EQ(pool.blocked_head(), 3u);
  pool.turn();
  EXPECT_EQ(pool.state(8), RuntimeState::closing);
}

TEST(Residency, AnUnloadNowStopsAtOnceAndRejectsThoseWhoWaitForTheStart) {
  Residency pool(0, WhenFull::wait);
  pool.arrive(1, 7);
  pool.ready(7);
  EXPECT_EQ(pool.unload_now(7), (Effects{{Kind::stop, 7}}));
  EXPECT_TRUE(pool.release(1).empty());
  pool.arrive(2, 8);
  EXPECT_EQ(pool.unload_now(8), (Effects{{Kind::reject_unloaded, 8, 2}, {Kind::stop, 8}}));
  EXPECT_TRUE(pool.stopped(8).empty());
}

TEST(Residency, APinnedRuntimeIsNoVictimAndAPoolOfPinsRefusesAtOnce) {
  Residency pool(2, WhenFull::wait);
  pool.pin(7, Pinned::yes);
  for (const KeyId key : {7u, 8u}) {
    pool.arrive(key, key);
    pool.ready(key);
    pool.release(key);
  }
  EXPECT_EQ(pool.arrive(1, 9), (Effects{{Kind::stop, 8}})) << "7 is older, and pinned";
  pool.stopped(8);
  pool.ready(9);
  pool.pin(9, Pinned::yes);
  EXPECT_EQ(pool.arrive(2, 8), (Effects{{Kind::reject_pinned, 8, 2}}));
  pool.release(1);
  pool.pin(9, Pinned::no);
  EXPECT_EQ(pool.arrive(3, 8), (Effects{{Kind::stop, 9}}));
}

TEST(Residency, APinTurnsAwayThoseWhoAlreadyWaitForItsPlace) {
  Residency pool(1, WhenFull::wait);
  pool.arrive(1, 7);
  pool.ready(7);
  pool.arrive(2, 8);
  pool.turn();
  EXPECT_EQ(pool.pin(7, Pinned::yes), (Effects{{Kind::reject_pinned, 8, 2}}));
  EXPECT_EQ(pool.state(7), RuntimeState::ready);
}

TEST(Residency, AnUnloadGoesBeforeAPinWhichStaysForTheNextStart) {
  Residency pool(1, WhenFull::wait);
  pool.pin(7, Pinned::yes);
  pool.arrive(1, 7);
  pool.ready(7);
  pool.release(1);
  EXPECT_EQ(pool.unload(7), (Effects{{Kind::stop, 7}}));
  EXPECT_TRUE(pool.arrive(2, 8).empty()) << "the place comes free, so it is waited for";
  EXPECT_EQ(pool.stopped(7), (Effects{{Kind::start, 8}}));
  EXPECT_TRUE(pool.is_pinned(7));
}

TEST(Residency, OnlyWhatIsIdleAndNotPinnedIsStoppedForBeingIdle) {
  Residency pool(0, WhenFull::wait);
  pool.arrive(1, 7);
  EXPECT_TRUE(pool.idle(7).empty()) << "it starts";
  pool.ready(7);
  EXPECT_TRUE(pool.idle(7).empty()) << "it is leased";
  pool.release(1);
  pool.pin(7, Pinned::yes);
  EXPECT_TRUE(pool.idle(7).empty()) << "it is pinned";
  pool.pin(7, Pinned::no);
  EXPECT_EQ(pool.idle(7), (Effects{{Kind::stop, 7}}));
}

TEST(Residency, ShutdownRejectsWaitersStopsTheIdleAndLetsTheLeasedEnd) {
  Residency pool(0, WhenFull::wait);
  pool.arrive(1, 7);
  pool.ready(7);
  pool.arrive(2, 8);
  pool.ready(8);
  pool.release(2);
  pool.arrive(3, 9);
  const Effects effects = pool.shutdown();
  EXPECT_EQ(effects, (Effects{{Kind::reject_shutdown, 9, 3}, {Kind::stop, 8}, {Kind::stop, 9}}));
  EXPECT_EQ(pool.arrive(4, 7), (Effects{{Kind::reject_shutdown, 7, 4}}));
  EXPECT_EQ(pool.release(1), (Effects{{Kind::stop, 7}}));
}

TEST(Residency, AfterTheDrainLimitLeasedRuntimesAreStoppedToo) {
  Residency pool(0, WhenFull::wait);
  pool.arrive(1, 7);
  pool.ready(7);
  pool.shutdown();
  EXPECT_EQ(pool.stop_leased(), (Effects{{Kind::stop, 7}}));
  EXPECT_TRUE(pool.release(1).empty());
  EXPECT_TRUE(pool.stopped(7).empty());
}

}  // namespace
}  // namespace werk::runtime
