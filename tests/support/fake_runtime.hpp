// An Engine and Runtimes that live in the test's own process and do nothing until the test says so:
// starts are held until finish_start() or fail_start(), stops until finish_stop() (or at once),
// deaths come by die(). It counts starts per key and fails the test when two of one key overlap.
#pragma once

#include <gtest/gtest.h>

#include <list>
#include <map>
#include <memory>
#include <string>

#include "werk/engine/engine.hpp"

namespace werk::test {

class FakeEngine;

class FakeRuntime final : public engine::Runtime {
 public:
  FakeRuntime(FakeEngine& engine, std::string key, std::size_t slots, async::Executor executor)
      : engine_(engine), key_(std::move(key)), exited_(executor), may_stop_(executor) {
    facts_.slots = slots;
    facts_.pid = 4242;
  }
  ~FakeRuntime() override {
    EXPECT_TRUE(exited_.is_set()) << "a runtime was destroyed while it ran";
  }
  const engine::RuntimeFacts& facts() const override { return facts_; }
  std::optional<engine::HttpTarget> passthrough(engine::Dialect) const override {
    return std::nullopt;
  }
  async::Event& exited() override { return exited_; }
  std::string exit_reason() const override { return reason_; }
  async::awaitable<Result<std::size_t>> busy_slots(std::stop_token) override {
    ++busy_asked_;
    co_return native_busy_;
  }
  async::awaitable<void> stop(async::Duration grace) override;

  async::awaitable<bool> says_dead(std::stop_token) override { co_return says_dead_; }

  void die(std::string reason);
  // From now on it says so when it is asked, and doesn't end.
  void core_died() { says_dead_ = true; }
  void finish_stop() { may_stop_.set(); }
  void native_busy(std::size_t slots) { native_busy_ = slots; }
  std::size_t busy_asked() const { return busy_asked_; }

 private:
  FakeEngine& engine_;
  std::string key_;
  engine::RuntimeFacts facts_;
  async::Event exited_;
  async::Event may_stop_;
  std::string reason_;
  std::size_t native_busy_ = 0;
  std::size_t busy_asked_ = 0;
  bool says_dead_ = false;
};

class FakeEngine final : public engine::Engine {
 public:
  explicit FakeEngine(async::Executor executor, std::size_t slots = 1)
      : executor_(executor), slots_(slots) {
    info_.name = "fake";
    info_.pool = "fake";
    info_.formats = {"gguf"};
  }

  const engine::EngineInfo& info() const override { return info_; }
  Result<engine::StartPlan> plan(const model::Manifest& manifest,
                                 const std::filesystem::path&) const override {
    return plan_for(manifest.id);
  }
  engine::StartPlan plan_for(const std::string& model) const {
    engine::StartPlan plan;
    plan.key.engine = info_.name;
    plan.key.manifest_identity = model;
    plan.manifest.id = model;
    plan.slots = slots_;
    return plan;
  }
  async::awaitable<Result<std::unique_ptr<engine::Runtime>>> start(engine::StartPlan plan,
                                                                   engine::StartObserver& observer,
                                                                   std::stop_token stop) override {
    const std::string key = plan.manifest.id;
    EXPECT_EQ(alive_[key], 0u) << "a second process for " << key;
    ++alive_[key];
    ++starts_[key];
    Start held(executor_, observer);
    held_[key] = &held;
    const bool told = co_await held.told.wait(stop);
    held_.erase(key);
    if (!told) {
      --alive_[key];
      co_return fail(ErrorCode::cancelled, "the start was stopped");
    }
    if (held.failure) {
      --alive_[key];
      co_return fail(*held.failure);
    }
    auto runtime = std::make_unique<FakeRuntime>(*this, key, slots_, executor_);
    runtimes_[key] = runtime.get();
    if (!hold_stops_) runtime->finish_stop();
    co_return runtime;
  }

  void finish_start(const std::string& key) { held(key).told.set(); }
  void fail_start(const std::string& key, Error error) {
    held(key).failure = std::move(error);
    held(key).told.set();
  }
  void progress(const std::string& key) { held(key).observer.progressed("loading"); }
  void hold_stops() { hold_stops_ = true; }
  bool starting(const std::string& key) const { return held_.contains(key); }
  std::size_t starts(const std::string& key) { return starts_[key]; }
  std::size_t alive(const std::string& key) { return alive_[key]; }
  FakeRuntime& runtime(const std::string& key) { return *runtimes_.at(key); }

 private:
  friend class FakeRuntime;
  struct Start {
    Start(async::Executor executor, engine::StartObserver& start_observer)
        : told(std::move(executor)), observer(start_observer) {}
    async::Event told;
    engine::StartObserver& observer;
    std::optional<Error> failure;
  };
  Start& held(const std::string& key) {
    if (!held_.contains(key)) ADD_FAILURE() << "no start of " << key << " is held";
    return *held_.at(key);
  }

  engine::EngineInfo info_;
  async::Executor executor_;
  std::size_t slots_;
  bool hold_stops_ = false;
  std::map<std::string, Start*> held_;
  std::map<std::string, FakeRuntime*> runtimes_;
  std::map<std::string, std::size_t> starts_;
  std::map<std::string, std::size_t> alive_;
};

inline async::awaitable<void> FakeRuntime::stop(async::Duration) {
  if (exited_.is_set()) co_return;
  co_await may_stop_.wait();
  if (exited_.is_set()) co_return;
  reason_ = "stopped";
  --engine_.alive_[key_];
  exited_.set();
}

inline void FakeRuntime::die(std::string reason) {
  reason_ = std::move(reason);
  --engine_.alive_[key_];
  exited_.set();
}

}  // namespace werk::test
