// POST /v1/chat/completions: reads the body, finds the route, waits for the right to run, and
// relays the engine's stream to the client, as events or folded into one whole answer. Bytes pass
// through but for the closed lists of openai_request and openai_stream. Owned by the Gateway; one
// handle() per request, loop thread only. A client that leaves at any point ends the call in the
// same turn.
#pragma once

#include <map>
#include <optional>
#include <string>

#include "werk/gateway/call.hpp"
#include "werk/gateway/engine_call.hpp"
#include "werk/gateway/openai_request.hpp"
#include "werk/http/exchange.hpp"

namespace werk::gateway {

struct ChatSettings {
  std::uint64_t body_bytes_max = std::uint64_t{128} << 20;
  std::optional<std::string> default_model;
  // Between two signs of life of an engine that works on a call.
  async::Duration engine_silence = std::chrono::seconds(600);
  // After so long a wait a streamed call gets its headers and signs of life; zero: never.
  async::Duration early_headers{};
  std::map<std::string, RequestDefaults> defaults = {};  // by model id

  RequestDefaults defaults_of(const std::string& model_id) const {
    const auto found = defaults.find(model_id);
    return found == defaults.end() ? RequestDefaults{} : found->second;
  }
};

class OpenAiChat {
 public:
  OpenAiChat(ChatSettings settings, CallParts parts)
      : settings_(std::move(settings)), parts_(parts) {}

  // Answers the request, with an error if need be.
  async::awaitable<void> handle(http::Exchange& exchange, Call& call);

 private:
  struct Job;

  async::awaitable<Status> run(http::Exchange& exchange, Call& call);
  async::awaitable<Result<Job>> read(EngineCall& engine_call);
  async::awaitable<Status> generate(http::Exchange& exchange, Call& call, EngineCall& engine_call,
                                    Job& job);

  ChatSettings settings_;
  CallParts parts_;
};

}  // namespace werk::gateway
