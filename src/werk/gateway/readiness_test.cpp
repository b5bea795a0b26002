#include "werk/gateway/readiness.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/support/manual_clock.hpp"

namespace werk::gateway {
namespace {

using namespace std::chrono_literals;

routing::SharedRoute way_of(const std::string& model, const std::string& runtime) {
  routing::Route route;
  route.plan.manifest.id = model;
  route.plan.key.engine = runtime;
  return std::make_shared<const routing::Route>(std::move(route));
}

class ReadinessTest : public ::testing::Test {
 protected:
  std::string cause(async::Duration lag = {}) {
    const auto error = not_ready(limits_, lag, runtimes_, calls_);
    return error ? error->message : "";
  }
  void call_runs(Call& call, const std::string& key) {
    call.routed(way_of("small", key));
    call.admitted();
  }

  ReadyLimits limits_{2s, 60s, 30s};
  test::ManualClock clock_;
  telemetry::Recorder recorder_;
  Calls calls_{clock_, recorder_};
  std::vector<runtime::RuntimeSnapshot> runtimes_;
};

TEST_F(ReadinessTest, AnIdleNodeIsReady) {
  clock_.advance(24h);
  runtimes_.emplace_back().state = runtime::RuntimeState::ready;
  EXPECT_EQ(cause(), "");
}

TEST_F(ReadinessTest, ALoopThatLagsIsNotReady) {
  EXPECT_EQ(cause(1999ms), "");
  EXPECT_NE(cause(2s), "");
}

TEST_F(ReadinessTest, AStartWithoutProgressIsNamed) {
  runtime::RuntimeSnapshot& starting = runtimes_.emplace_back();
  starting.model = "big";
  starting.silent_start = 59s;
  EXPECT_EQ(cause(), "");
  starting.silent_start = 61s;
  EXPECT_EQ(cause(), "big starts and has made no progress for 61 s");
}

TEST_F(ReadinessTest, AnEngineWithCallsThatSaysNothingIsNamed) {
  Call call(calls_, "a", "/v1/chat/completions");
  call_runs(call, "key");
  clock_.advance(29s);
  EXPECT_EQ(cause(), "");
  clock_.advance(2s);
  EXPECT_EQ(cause(), "the engine of small works on 1 call(s) and has said nothing for 31 s");
  call.piece(0, clock_.now());
  EXPECT_EQ(cause(), "");
}

TEST_F(ReadinessTest, AnEngineThatSpeaksToOneOfItsCallsLives) {
  Call silent(calls_, "a", "/v1/chat/completions");
  Call spoken_to(calls_, "b", "/v1/chat/completions");
  Call elsewhere(calls_, "c", "/v1/chat/completions");
  call_runs(silent, "key");
  call_runs(spoken_to, "key");
  call_runs(elsewhere, "other");
  clock_.advance(31s);
  spoken_to.piece(1, clock_.now());
  elsewhere.piece(1, clock_.now());
  EXPECT_EQ(cause(), "");
  clock_.advance(20s);
  spoken_to.piece(2, clock_.now());
  clock_.advance(20s);
  EXPECT_EQ(cause(), "the engine of small works on 1 call(s) and has said nothing for 40 s");
}

TEST_F(ReadinessTest, ACallThatWaitsIsNoSignOfASilentEngine) {
  Call call(calls_, "a", "/v1/chat/completions");
  call.routed(way_of("small", "key"));
  call.waits_for(runtime::WaitFor::slot);
  clock_.advance(1h);
  EXPECT_EQ(cause(), "");
}

}  // namespace
}  // namespace werk::gateway
