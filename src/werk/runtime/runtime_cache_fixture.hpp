// What the tests of RuntimeCache share: a cache over a FakeEngine on a clock that stands still, and
// callers that ask for a model and hold what they got until the test lets them go. Loop thread
// only; included by tests alone.
#pragma once

#include <gtest/gtest.h>

#include <deque>

#include "tests/support/fake_runtime.hpp"
#include "tests/support/loop_fixture.hpp"
#include "tests/support/manual_clock.hpp"
#include "werk/runtime/runtime_cache.hpp"

namespace werk::runtime {

// One caller: asks for a model, and holds what it got until the test lets it go.
struct Caller {
  std::optional<Result<Admission>> result;
  std::stop_source stop;
  bool admitted() const { return result && result->has_value(); }
  ErrorCode error() const {
    return result && !result->has_value() ? result->error().code : ErrorCode::internal;
  }
  bool done = false;
  void leave() {
    done = done || result.has_value();
    result.reset();
  }
};

class RuntimeCacheTest : public test::LoopFixture {
 protected:
  void make(CacheSettings settings = {}, std::size_t slots = 1) {
    engine_ = std::make_unique<test::FakeEngine>(executor(), slots);
    cache_ = std::make_unique<RuntimeCache>(executor(), clock_, settings);
  }
  void TearDown() override {
    if (!cache_) return;
    for (Caller& caller : callers_) caller.leave();
    cache_->begin_shutdown();
    cache_->stop_leased();
    bool stopped = false;
    start(wait_stopped(stopped));
    for (int i = 0; i < 10 && !stopped; ++i) {
      poll();
      clock_.advance(std::chrono::seconds(1));
    }
    EXPECT_TRUE(stopped);
    poll();
    callers_.clear();
    cache_.reset();
  }
  async::awaitable<void> wait_stopped(bool& stopped) {
    co_await cache_->stopped();
    stopped = true;
  }
  async::awaitable<void> unload_some(std::string model, UnloadHow how) {
    const ModelRuntimes which{model};
    const std::stop_token never;
    co_await cache_->unload(which, how, never);
  }
  async::awaitable<void> settle(Lease& lease, bool& dead) { dead = co_await lease.settle_death(); }
  async::awaitable<void> ask(Caller& caller, std::string model, std::size_t weight) {
    Ask asked;
    asked.weight = weight;
    co_await ask_as(caller, std::move(model), asked);
  }
  async::awaitable<void> ask_as(Caller& caller, std::string model, Ask asked) {
    const engine::StartPlan plan = engine_->plan_for(model);
    auto result = co_await cache_->admit(*engine_, plan, asked, caller.stop.get_token());
    caller.result.emplace(std::move(result));
  }
  Caller& arrive(const std::string& model, std::size_t weight = 1) {
    Caller& caller = callers_.emplace_back();
    start(ask(caller, model, weight));
    poll();
    return caller;
  }
  void ready(const std::string& model) {
    engine_->finish_start(model);
    poll();
  }
  void advance(async::Duration by) {
    clock_.advance(by);
    poll();
  }
  RuntimeState state(const std::string& model) {
    for (const RuntimeSnapshot& one : cache_->snapshot()) {
      if (one.model == model) return one.state;
    }
    return RuntimeState::absent;
  }

  test::ManualClock clock_;
  std::unique_ptr<test::FakeEngine> engine_;
  std::unique_ptr<RuntimeCache> cache_;
  std::deque<Caller> callers_;
};

}  // namespace werk::runtime
