// What the runtime cache tells: of runtimes to its sink, of waits to the calls that wait.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "werk/runtime/runtime_cache_fixture.hpp"

namespace werk::runtime {
namespace {

using namespace std::chrono_literals;
using telemetry::RuntimeName;
using telemetry::StopReason;

class Notes final : public telemetry::RuntimeSink {
 public:
  void starting(const RuntimeName& runtime) override { note(runtime, "starting"); }
  void progressed(const RuntimeName& runtime, std::string_view what) override {
    note(runtime, fmt::format("progress {}", what));
  }
  void ready(const RuntimeName& runtime, std::chrono::duration<double> took,
             std::size_t slots) override {
    note(runtime, fmt::format("ready {:.0f} s {}", took.count(), slots));
  }
  void start_failed(const RuntimeName& runtime, const Error& error) override {
    note(runtime, fmt::format("failed {}", name_of(error.code)));
  }
  void stopping(const RuntimeName& runtime, StopReason reason) override {
    note(runtime, fmt::format("stopping {}", name_of(reason)));
  }
  void stopped(const RuntimeName& runtime, StopReason reason) override {
    note(runtime, fmt::format("stopped {}", name_of(reason)));
  }
  void died(const RuntimeName& runtime, std::string_view how) override {
    note(runtime, fmt::format("died {}", how));
  }
  // What was told since the last look.
  std::vector<std::string> take() { return std::exchange(all_, {}); }

 private:
  void note(const RuntimeName& runtime, std::string_view what) {
    all_.push_back(fmt::format("{} {}", runtime.model, what));
  }
  std::vector<std::string> all_;
};

using Told = std::vector<std::string>;

class RuntimeSinkTest : public RuntimeCacheTest {
 protected:
  void make_told(CacheSettings settings = {}, std::size_t slots = 1) {
    make(std::move(settings), slots);
    cache_->set_sink(notes_);
  }

  Notes notes_;
};

TEST_F(RuntimeSinkTest, IsToldOfAStartItsProgressAndItsEnd) {
  make_told();
  arrive("a");
  EXPECT_EQ(notes_.take(), Told({"a starting"}));
  engine_->progress("a");
  engine_->progress("a");
  advance(3s);
  ready("a");
  EXPECT_EQ(notes_.take(), Told({"a progress loading", "a ready 3 s 1"}));
  engine_->runtime("a").die("signal 9");
  poll();
  EXPECT_EQ(notes_.take(), Told({"a died signal 9"}));
}

TEST_F(RuntimeSinkTest, IsToldWhyAStartFailed) {
  make_told();
  arrive("a");
  engine_->fail_start("a", Error{ErrorCode::model_unusable, "broken"});
  poll();
  EXPECT_EQ(notes_.take(), Told({"a starting", "a failed model_unusable"}));
}

TEST_F(RuntimeSinkTest, IsToldThatARuntimeGoesForAnothersSake) {
  CacheSettings settings;
  settings.pools["fake"].capacity = 1;
  make_told(settings);
  Caller& first = arrive("a");
  ready("a");
  first.leave();
  poll();
  notes_.take();
  arrive("b");
  EXPECT_EQ(notes_.take(), Told({"a stopping capacity", "a stopped capacity", "b starting"}));
}

TEST_F(RuntimeSinkTest, IsToldOfIdleUnloadedAndShutDownRuntimesEachByItsReason) {
  CacheSettings settings;
  settings.idle_timeout = 60s;
  make_told(settings);
  Caller& first = arrive("a");
  ready("a");
  first.leave();
  poll();
  notes_.take();
  advance(61s);
  EXPECT_EQ(notes_.take(), Told({"a stopping idle", "a stopped idle"}));
  Caller& second = arrive("a");
  ready("a");
  second.leave();
  poll();
  notes_.take();
  start(unload_some("a", UnloadHow::after_calls));
  poll();
  EXPECT_EQ(notes_.take(), Told({"a stopping unloaded", "a stopped unloaded"}));
  Caller& third = arrive("a");
  ready("a");
  third.leave();
  poll();
  notes_.take();
  cache_->begin_shutdown();
  poll();
  EXPECT_EQ(notes_.take(), Told({"a stopping shutdown", "a stopped shutdown"}));
}

TEST_F(RuntimeSinkTest, APoolThatKeepsNothingSaysSo) {
  CacheSettings settings;
  settings.pools["fake"] = {1, 60s, "--max", Retention::drop};
  make_told(settings);
  Caller& caller = arrive("a");
  ready("a");
  notes_.take();
  caller.leave();
  poll();
  advance(1s);
  EXPECT_EQ(notes_.take(), Told({"a stopping not_kept", "a stopped not_kept"}));
}

TEST_F(RuntimeSinkTest, AnEngineThatIsReplacedForItsSilenceSaysSo) {
  make_told({}, 1);
  Caller& caller = arrive("a");
  ready("a");
  notes_.take();
  advance(60s);
  (*caller.result)->lease.condemn_if_silent(30s);
  poll();
  EXPECT_EQ(notes_.take(), Told({"a stopping silent", "a stopped silent"}));
}

// ---- waits

class WaitNotes final : public WaitObserver {
 public:
  void waits_for(WaitFor what) override { all.push_back(what); }
  std::vector<WaitFor> all;
};

TEST_F(RuntimeSinkTest, ACallIsToldWhatItWaitsForInTurn) {
  CacheSettings settings;
  settings.pools["fake"].capacity = 1;
  make_told(settings);
  Caller& first = arrive("a");
  ready("a");
  WaitNotes notes;
  Caller& second = callers_.emplace_back();
  Ask asked;
  asked.observer = &notes;
  start(ask_as(second, "b", asked));
  poll();
  EXPECT_EQ(notes.all, std::vector({WaitFor::place}));
  EXPECT_EQ(cache_->waits().place, 1u);
  EXPECT_EQ(cache_->waits().load, 0u);
  first.leave();
  poll();
  EXPECT_EQ(notes.all, std::vector({WaitFor::place, WaitFor::load}));
  EXPECT_EQ(cache_->waits().load, 1u);
  ready("b");
  EXPECT_EQ(notes.all, std::vector({WaitFor::place, WaitFor::load, WaitFor::slot}));
  EXPECT_TRUE(second.admitted());
  Caller& third = arrive("b");
  EXPECT_FALSE(third.admitted());
  EXPECT_EQ(cache_->waits().slot, 1u);
  EXPECT_EQ(cache_->waiting(), 1u);
  third.stop.request_stop();
  poll();
}

}  // namespace
}  // namespace werk::runtime
