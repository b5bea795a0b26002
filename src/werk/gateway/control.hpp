// Control: what people do to the running node over HTTP: load, unload, pin and unpin a model, stop
// the node. Names are taken as calls take them, by id, alias or rule; a model that was removed
// while it is loaded is still reached by its id. Errors are returned; the gateway tells them. Owned
// by the gateway, loop thread only.
#pragma once

#include <functional>
#include <string>

#include "werk/gateway/call.hpp"
#include "werk/gateway/installed_models.hpp"
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
  const CallCounters& calls;
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
  async::awaitable<Status> stop(http::Exchange& exchange);
  // The model that a name means, installed or merely loaded.
  async::awaitable<Result<runtime::ModelRuntimes>> find(std::string name);

  ControlParts parts_;
  std::function<void()> on_stop_;
};

}  // namespace werk::gateway
