// POST /v1/chat/completions: reads the body, finds the route, waits for the right to run, and
// relays the engine's stream to the client, as events or folded into one whole answer. Bytes pass
// through but for the closed lists of openai_request and openai_stream. Owned by the Gateway; one
// handle() per request, loop thread only. A client that leaves at any point ends the call in the
// same turn: the engine's connection closes, lease and permit go back.
#pragma once

#include <optional>
#include <string>

#include "werk/gateway/body_budget.hpp"
#include "werk/gateway/call.hpp"
#include "werk/gateway/installed_models.hpp"
#include "werk/gateway/openai_request.hpp"
#include "werk/gateway/openai_stream.hpp"
#include "werk/http/client.hpp"
#include "werk/http/exchange.hpp"
#include "werk/routing/router.hpp"
#include "werk/runtime/runtime_cache.hpp"

namespace werk::gateway {

struct ChatSettings {
  std::uint64_t body_bytes_max = std::uint64_t{128} << 20;
  std::optional<std::string> default_model;
  // Between two signs of life of an engine that works on a call.
  async::Duration engine_silence = std::chrono::seconds(600);
};

class OpenAiChat {
 public:
  // All borrowed.
  OpenAiChat(ChatSettings settings, async::Clock& clock, InstalledModels& models,
             const routing::Router& router, runtime::RuntimeCache& cache, http::Client& client,
             BodyBudget& budget);

  // Answers the request, with an error if need be.
  async::awaitable<void> handle(http::Exchange& exchange, Call& call);

 private:
  struct Job;
  class Relay;

  async::awaitable<Status> run(http::Exchange& exchange, Call& call);
  async::awaitable<Status> read_body(http::Exchange& exchange, Job& job);
  async::awaitable<Status> find_route(Job& job);
  async::awaitable<Status> generate(http::Exchange& exchange, Call& call, Job& job);
  async::awaitable<Status> talk(http::Exchange& exchange, Call& call, Job& job,
                                runtime::Admission& admission);
  async::awaitable<Error> explain(Error error, runtime::Admission& admission);
  async::awaitable<void> refuse(http::Exchange& exchange, Call& call, Error error);

  ChatSettings settings_;
  async::Clock& clock_;
  InstalledModels& models_;
  const routing::Router& router_;
  runtime::RuntimeCache& cache_;
  http::Client& client_;
  BodyBudget& budget_;
};

}  // namespace werk::gateway
