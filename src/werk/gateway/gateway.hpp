// Gateway: what the node answers over HTTP. It checks who asks, finds the route, and answers from
// the node's own state or hands the call to a dialect. It never names a concrete engine and never
// waits for one on a status route. Owned by the app, loop thread only.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "werk/async/loop_lag.hpp"
#include "werk/base/digest.hpp"
#include "werk/gateway/access.hpp"
#include "werk/gateway/body_budget.hpp"
#include "werk/gateway/calls.hpp"
#include "werk/gateway/control.hpp"
#include "werk/gateway/event_streams.hpp"
#include "werk/gateway/installed_models.hpp"
#include "werk/gateway/machine_readings.hpp"
#include "werk/gateway/messages.hpp"
#include "werk/gateway/openai_chat.hpp"
#include "werk/gateway/readiness.hpp"
#include "werk/gateway/routes.hpp"
#include "werk/gateway/status_pages.hpp"
#include "werk/http/exchange.hpp"

namespace werk::gateway {

struct GatewaySettings {
  AccessSettings access;
  ChatSettings chat;
  PromptEdits prompt_edits = PromptEdits::apply;
  std::uint64_t buffered_bodies_bytes_max = std::uint64_t{512} << 20;
  ReadyLimits ready;
  NodeFacts node;
  std::string node_id = random_hex(8);  // by which other nodes know this one, anew at each start
};

// What the gateway works with; all borrowed.
struct GatewayParts {
  async::Clock& clock;
  InstalledModels& models;
  const routing::Router& router;
  runtime::RuntimeCache& cache;
  http::Client& client;
  engine::OutputLogs& output;
  telemetry::Recorder& recorder;
  const async::LoopLag& loop_lag;
};

class Gateway final : public http::Handler {
 public:
  Gateway(GatewaySettings settings, GatewayParts parts);

  async::awaitable<void> handle(http::Exchange& exchange) override;

  // From now on calls are refused as draining; status routes go on.
  void begin_drain() { draining_ = Draining::yes; }
  // Why the node cannot serve what it was started for; empty: it can. Shown by /readyz.
  void set_not_ready(std::string cause) { not_ready_ = std::move(cause); }
  // What `POST /werk/v1/stop` does once it has answered.
  void set_on_stop(std::function<void()> on_stop) { control_.set_on_stop(std::move(on_stop)); }
  // How many connections there are, for those who look at the node.
  void set_connections(std::function<std::size_t()> count) { connections_ = std::move(count); }
  // Ends every follower of events; returns when they are gone or `stop` says so.
  async::awaitable<void> end_followers(std::stop_token stop) {
    return events_.end(std::move(stop));
  }
  const CallCounters& calls() const { return calls_.counters(); }

 private:
  struct Asked;

  async::awaitable<void> answer(const Asked& asked, const FoundRoute& route);
  async::awaitable<void> answer_ready(const Asked& asked);
  async::awaitable<void> answer_observability(const Asked& asked);
  async::awaitable<void> answer_metrics(const Asked& asked);
  async::awaitable<void> answer_events(const Asked& asked);
  async::awaitable<void> answer_models(const Asked& asked);
  async::awaitable<void> answer_model(const Asked& asked, std::string name);
  async::awaitable<void> answer_call(const Asked& asked, std::string_view route, RouteId id);
  async::awaitable<void> answer_control(const Asked& asked, const FoundRoute& route);
  async::awaitable<void> answer_options(const Asked& asked, std::string_view allow);
  async::awaitable<void> refuse_method(const Asked& asked, std::string_view allow);
  Status admit(const http::Request& request, KeyRule key) const;
  // Why /readyz says no.
  std::optional<Error> not_ready(const CacheState& cache) const;
  NodeState state(const CacheState& cache);
  CallParts call_parts();

  GatewaySettings settings_;
  GatewayParts parts_;
  Access access_;
  BodyBudget budget_;
  Calls calls_;
  MachineReadings readings_;
  EventStreams events_;
  OpenAiChat chat_;
  Messages messages_;
  Control control_;
  Draining draining_ = Draining::no;
  std::string not_ready_;
  std::function<std::size_t()> connections_;
  async::TimePoint begun_;
};

}  // namespace werk::gateway
