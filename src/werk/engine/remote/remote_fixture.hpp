// For the tests of this module: a RemoteEngine and the scripted server that it is to speak to,
// under a clock that is moved by hand. Owned by the test, loop thread only.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tests/support/loop_fixture.hpp"
#include "tests/support/manual_clock.hpp"
#include "tests/support/scripted_server.hpp"
#include "werk/engine/remote/remote_engine.hpp"

namespace werk::engine::remote {

class RemoteFixture : public test::LoopFixture {
 protected:
  RemoteFixture() : server_(executor()) { port_ = server_.listen_tcp(); }
  void TearDown() override {
    if (runtime_) run(runtime_->stop({}));
    runtime_.reset();
    if (engine_) run(engine_->shut_down());
    run(server_.close());
  }

  RemoteSettings settings(std::vector<std::string> models = {}) const {
    RemoteSettings settings;
    settings.name = "lab";
    settings.url.host = "127.0.0.1";
    settings.url.port = port_;
    settings.models = std::move(models);
    return settings;
  }
  void make(RemoteSettings settings) {
    engine_ = std::make_unique<RemoteEngine>(executor(), clock_, std::move(settings));
  }

  static test::Reply page(std::string_view body) {
    return test::Reply::whole(200, "application/json", body);
  }
  static test::Reply models_page(const std::string& entries) {
    return page("{\"object\":\"list\",\"data\":[" + entries + "]}");
  }

  StartPlan plan(const std::string& id) const {
    PeerModel model;
    model.id = id;
    return *engine_->plan(remote_manifest("lab", model), {});
  }
  // What the start came to: "ready", or the error's code and message.
  std::string start(const std::string& id) {
    run(start_into(plan(id)));
    return outcome_;
  }
  // The same without waiting: outcome_ says it once it is there.
  async::awaitable<void> start_later(std::string id) { co_await start_into(plan(id)); }
  std::string look() {
    run(look_into());
    return outcome_;
  }
  std::vector<std::string> listed() const {
    std::vector<std::string> ids;
    for (const PeerModel& model : engine_->listing().models) ids.push_back(model.id);
    return ids;
  }

  test::ManualClock clock_;
  test::ScriptedServer server_;
  std::uint16_t port_ = 0;
  std::unique_ptr<RemoteEngine> engine_;
  std::unique_ptr<Runtime> runtime_;
  std::string outcome_;

 private:
  struct Quiet final : StartObserver {
    void progressed(std::string_view) override {}
  };
  async::awaitable<void> start_into(StartPlan plan) {
    auto started = co_await engine_->start(std::move(plan), quiet_, std::stop_token());
    if (started) {
      runtime_ = std::move(*started);
      outcome_ = "ready";
    } else {
      outcome_ = std::string(name_of(started.error().code)) + ": " + started.error().message;
    }
  }
  async::awaitable<void> look_into() {
    const Status looked = co_await engine_->look(std::stop_token());
    outcome_ = looked ? "looked" : looked.error().message;
  }

  Quiet quiet_;
};

}  // namespace werk::engine::remote
