// What the tests of the adapter share: a home with one installed model, a fake engine, and the
// services an engine needs on a real loop. Owned by one test.
#pragma once

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>

#include "tests/support/engine_control.hpp"
#include "tests/support/loop_fixture.hpp"
#include "tests/support/temporary_folder.hpp"
#include "werk/engine/llama_server/llama_server.hpp"
#include "werk/process/program.hpp"

namespace werk::engine::llama_server {

class LlamaServerFixture : public test::LoopFixture {
 protected:
  LlamaServerFixture() {
    std::filesystem::create_directories(model_folder_ / "files");
    std::ofstream(model_folder_ / "files" / "small.gguf") << "GGUF and so on";
    manifest_.id = "small";
    manifest_.training_context_tokens = 8192;
    model::ManifestFile file;
    file.path = "files/small.gguf";
    file.size_bytes = 14;
    file.sha256 = std::string(64, 'a');
    manifest_.files.push_back(file);

    settings_.home = home_.path().string();
    settings_.environment = process::own_environment();
    settings_.launch.options.threads = 1;
    for (const std::string& entry : control_.environment()) settings_.environment.push_back(entry);
    finding_.named.any_mode = test::EngineControl::program();
    finding_.home = home_.path();
    finding_.environment = settings_.environment;
    control_.set_waker([this] { loop_.post([] {}); });
  }

  ~LlamaServerFixture() override {
    control_.set_waker({});
    runtime_.reset();
    children_.reset();
    EXPECT_TRUE(control_.none_living_within(test::kWatchdog)) << "an engine was left behind";
  }

  // With the settings as the test left them.
  LlamaServerEngine& engine() {
    if (engine_ == nullptr) {
      finder_ = std::make_unique<Finder>(*children_, clock_, offload_, finding_);
      const Services services{executor(), clock_, offload_, *children_, sockets_, *finder_};
      engine_ = std::make_unique<LlamaServerEngine>(services, settings_);
    }
    return *engine_;
  }

  StartPlan plan() {
    auto plan = engine().plan(manifest_, model_folder_);
    EXPECT_TRUE(plan.has_value()) << (plan ? "" : plan.error().message);
    return plan.value_or(StartPlan{});
  }

  // Begins a start; ended() tells when it is over, runtime_ or error_ how.
  void begin() {
    result_seen_ = false;
    start(start_and_keep(plan()));
  }
  bool ended() const { return result_seen_; }
  void finish() {
    run_until([this] { return ended(); });
  }
  void bring_up() {
    begin();
    finish();
    ASSERT_NE(runtime_, nullptr) << error_.message;
  }
  // Starts something that must fail, and leaves the reason in error_.
  void fail_to_start() {
    begin();
    finish();
    ASSERT_EQ(runtime_, nullptr) << "it came up";
  }
  void stop_runtime(async::Duration grace) { run(runtime_->stop(grace)); }

  test::EngineEvent expect(std::string_view name) {
    std::optional<test::EngineEvent> event;
    run_until([&] {
      event = control_.take(name);
      return event.has_value();
    });
    return event.value_or(test::EngineEvent{});
  }

  std::size_t files_in_socket_folder() const {
    std::size_t sockets = 0;
    for (const auto& entry : std::filesystem::directory_iterator(sockets_.path())) {
      if (entry.path().extension() == ".sock") ++sockets;
    }
    return sockets;
  }

  class Observer final : public StartObserver {
   public:
    void progressed(std::string_view) override {}
  };

  test::TemporaryFolder home_;
  std::filesystem::path model_folder_ = home_ / "models/small";
  test::EngineControl control_;
  async::SteadyClock clock_{executor()};
  async::Offload offload_{1};
  std::unique_ptr<process::Children> children_ =
      std::make_unique<process::Children>(executor(), clock_);
  process::SocketFolder sockets_ = *process::SocketFolder::create(process::own_variable);
  model::Manifest manifest_;
  LlamaServerSettings settings_;
  FinderSettings finding_;
  std::unique_ptr<Finder> finder_;
  std::unique_ptr<LlamaServerEngine> engine_;
  Observer observer_;
  std::stop_source stop_;
  std::unique_ptr<Runtime> runtime_;
  Error error_;

 private:
  async::awaitable<void> start_and_keep(StartPlan start_plan) {
    auto started = co_await engine().start(std::move(start_plan), observer_, stop_.get_token());
    if (started) {
      runtime_ = std::move(*started);
    } else {
      error_ = started.error();
    }
    result_seen_ = true;
  }

  bool result_seen_ = false;
};

}  // namespace werk::engine::llama_server
