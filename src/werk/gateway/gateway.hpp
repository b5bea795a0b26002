// Gateway: what the node answers over HTTP. It checks who asks, finds the route, and answers from
// the node's own state or hands the call to a dialect. It never names a concrete engine and never
// waits for one on a status route. Owned by the app, loop thread only.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "werk/base/digest.hpp"
#include "werk/gateway/access.hpp"
#include "werk/gateway/body_budget.hpp"
#include "werk/gateway/call.hpp"
#include "werk/gateway/control.hpp"
#include "werk/gateway/installed_models.hpp"
#include "werk/gateway/messages.hpp"
#include "werk/gateway/openai_chat.hpp"
#include "werk/gateway/routes.hpp"
#include "werk/gateway/status_pages.hpp"
#include "werk/http/exchange.hpp"

namespace werk::gateway {

struct GatewaySettings {
  AccessSettings access;
  ChatSettings chat;
  PromptEdits prompt_edits = PromptEdits::apply;
  std::uint64_t buffered_bodies_bytes_max = std::uint64_t{512} << 20;
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
  const CallCounters& calls() const { return counters_; }

 private:
  struct Asked;

  async::awaitable<void> answer(const Asked& asked, const FoundRoute& route);
  async::awaitable<void> answer_ready(const Asked& asked);
  async::awaitable<void> answer_models(const Asked& asked);
  async::awaitable<void> answer_model(const Asked& asked, std::string name);
  async::awaitable<void> answer_call(const Asked& asked, std::string route, RouteId id);
  async::awaitable<void> answer_control(const Asked& asked, const FoundRoute& route);
  async::awaitable<void> answer_options(const Asked& asked, std::string_view allow);
  async::awaitable<void> refuse_method(const Asked& asked, std::string_view allow);
  Status admit(const http::Request& request, KeyRule key) const;
  CallParts call_parts();

  GatewaySettings settings_;
  GatewayParts parts_;
  Access access_;
  BodyBudget budget_;
  CallCounters counters_;
  OpenAiChat chat_;
  Messages messages_;
  Control control_;
  Draining draining_ = Draining::no;
  std::string not_ready_;
};

}  // namespace werk::gateway
