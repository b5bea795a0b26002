#include "werk/runtime/permit_line.hpp"

#include <gtest/gtest.h>

namespace werk::runtime {
namespace {

using Answer = PermitLine::Answer;
using After = PermitLine::After;
using Calls = std::vector<CallId>;

TEST(PermitLine, GivesAsManyAsThereAreSlotsAndThenInOrderOfArrival) {
  PermitLine line(2, 10);
  EXPECT_EQ(line.arrive({1}), Answer::granted);
  EXPECT_EQ(line.arrive({2}), Answer::granted);
  EXPECT_EQ(line.arrive({3}), Answer::waits);
  EXPECT_EQ(line.arrive({4}), Answer::waits);
  EXPECT_EQ(line.release(2, After::free), Calls{3});
  EXPECT_EQ(line.release(1, After::free), Calls{4});
}

TEST(PermitLine, WithoutALimitEveryoneRuns) {
  PermitLine line(0, 0);
  for (CallId call = 1; call <= 100; ++call) EXPECT_EQ(line.arrive({call, 3}), Answer::granted);
}

TEST(PermitLine, AHeavyHeadIsNotOvertaken) {
  PermitLine line(2, 10);
  line.arrive({1});
  EXPECT_EQ(line.arrive({2, 2}), Answer::waits);
  EXPECT_EQ(line.arrive({3}), Answer::waits);
  EXPECT_EQ(line.cancel(2), Calls{3}) << "who stood behind it may run when it leaves";
}

TEST(PermitLine, ACallHeavierThanTheRuntimeIsToldSoAtOnce) {
  PermitLine line(2, 10);
  EXPECT_EQ(line.arrive({1, 3}), Answer::too_heavy);
}

TEST(PermitLine, AFullLineSaysSo) {
  PermitLine line(1, 1);
  line.arrive({1});
  EXPECT_EQ(line.arrive({2}), Answer::waits);
  EXPECT_EQ(line.arrive({3}), Answer::line_full);
}

TEST(PermitLine, AQuarantinedPermitStaysTakenUntilTheEngineIsSeenIdle) {
  PermitLine line(1, 10);
  line.arrive({1});
  line.arrive({2});
  EXPECT_TRUE(line.release(1, After::quarantine).empty());
  EXPECT_TRUE(line.engine_works_on(1).empty());
  EXPECT_EQ(line.engine_works_on(0), Calls{2});
  EXPECT_EQ(line.quarantined(), 0u);
}

TEST(PermitLine, TheEnginesOwnRunningCallsDoNotKeepAQuarantine) {
  PermitLine line(3, 10);
  line.arrive({1});
  line.arrive({2});
  line.arrive({3});
  line.arrive({4});
  line.release(1, After::quarantine);
  EXPECT_TRUE(line.engine_works_on(3).empty());
  EXPECT_EQ(line.engine_works_on(2), Calls{4});
}

TEST(PermitLine, AnExclusiveCallRunsAloneAndHoldsBackWhoComesLater) {
  PermitLine line(2, 10);
  line.arrive({1});
  EXPECT_EQ(line.arrive_exclusive(2), Answer::waits);
  EXPECT_EQ(line.arrive({3}), Answer::waits);
  EXPECT_EQ(line.release(1, After::free), Calls{2});
  EXPECT_EQ(line.release(2, After::free), Calls{3});
}

TEST(PermitLine, ACancelledWaiterNeverRuns) {
  PermitLine line(1, 10);
  line.arrive({1});
  line.arrive({2});
  line.arrive({3});
  line.cancel(2);
  EXPECT_EQ(line.release(1, After::free), Calls{3});
}

}  // namespace
}  // namespace werk::runtime
