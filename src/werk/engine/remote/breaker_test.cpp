#include "werk/engine/remote/breaker.hpp"

#include <gtest/gtest.h>

namespace werk::engine::remote {
namespace {

TEST(Breaker, OpensAtTheThirdFailureInARow) {
  Breaker breaker;
  breaker.call_failed();
  breaker.call_failed();
  EXPECT_FALSE(breaker.is_open());
  breaker.call_failed();
  EXPECT_TRUE(breaker.is_open());
}

TEST(Breaker, AnAnsweredCallBeginsTheCountAnew) {
  Breaker breaker;
  breaker.call_failed();
  breaker.call_failed();
  breaker.probe_failed();
  breaker.call_answered();
  breaker.call_failed();
  breaker.call_failed();
  EXPECT_FALSE(breaker.is_open());
  EXPECT_FALSE(breaker.probes_fail());
}

TEST(Breaker, AFrontThatAnswersProbesDoesNotHideThatCallsFail) {
  Breaker breaker;
  for (int i = 0; i < 3; ++i) {
    EXPECT_FALSE(breaker.is_open());
    breaker.call_failed();
    breaker.probe_answered();
  }
  EXPECT_TRUE(breaker.is_open());
}

TEST(Breaker, ProbesAloneOpenItToo) {
  Breaker breaker;
  breaker.probe_failed();
  EXPECT_TRUE(breaker.probes_fail());
  breaker.probe_answered();
  EXPECT_FALSE(breaker.probes_fail());
  for (int i = 0; i < 3; ++i) breaker.probe_failed();
  EXPECT_TRUE(breaker.is_open());
}

}  // namespace
}  // namespace werk::engine::remote
