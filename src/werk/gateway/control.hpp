// Control: what people do to the running node over HTTP: load, unload, pin and unpin a model, read
// what its engines print, stop the node. Names are taken as calls take them, by id, alias or rule;
// a model that was removed while it is loaded is still reached by its id. Errors are returned; the
// gateway tells them. Owned by the gateway, loop thread only.
#pragma once

#include <functional>
#include <string>

#include "werk/engine/output_logs.hpp"
#include "werk/gateway/calls.hpp"
#include "werk/gateway/installed_models.hpp"
#include "werk/gateway/machine_readings.hpp"
#include "werk/gateway/routes.hpp"
#include "werk/http/exchange.hpp"
#include "werk/routing/router.hpp"
#include "werk/runtime/runtime_cache.hpp"

namespace werk::gateway {

// All borrowed.
struct ControlParts {
  InstalledModels& models;
  const routing::Router& router;
  runtime::RuntimeCache& cache;
  engine::OutputLogs& output;
  async::Clock& clock;
  const CallCounters& calls;
  MachineReadings& readings;
};

class Control {
 public:
  explicit Control(ControlParts parts) : parts_(parts) {}

  // Answers one of the control routes, or fails before anything was answered.
  async::awaitable<Status> handle(http::Exchange& exchange, const FoundRoute& route);
  // Does what SIGTERM does. Called after the answer of a stop has left.
  void set_on_stop(std::function<void()> on_stop) { on_stop_ = std::move(on_stop); }

 private:
  async::awaitable<Status> load(http::Exchange& exchange, std::string name);
  async::awaitable<Status> unload(http::Exchange& exchange, std::string name, std::string body);
  async::awaitable<Status> pin(http::Exchange& exchange, std::string name, runtime::Pinned pinned);
  async::awaitable<Status> load_showing(http::Exchange& exchange, routing::SharedRoute route);
  async::awaitable<void> show_progress(http::Exchange& exchange, std::string key,
                                       std::stop_token done);
  async::awaitable<Result<std::string>> loaded(const routing::Route& route, std::stop_token stop);
  async::awaitable<Status> logs(http::Exchange& exchange, std::string name);
  async::awaitable<Status> follow(http::Exchange& exchange, std::optional<std::string> model,
                                  std::size_t lines, engine::Masker masker);
  // Whose output a name means; and what else hides in it.
  async::awaitable<Result<std::string>> find_log(std::string name, engine::Masker& masker);
  async::awaitable<Status> stop(http::Exchange& exchange);
  // The model that a name means, installed or merely loaded.
  async::awaitable<Result<runtime::ModelRuntimes>> find(std::string name);

  ControlParts parts_;
  std::function<void()> on_stop_;
};

}  // namespace werk::gateway
