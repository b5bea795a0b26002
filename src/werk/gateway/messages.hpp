// POST /v1/messages and /v1/messages/count_tokens: the Messages dialect over the neutral
// vocabulary. A body becomes a chat::Request, that an OpenAI chat body for the engine; the engine's
// chunks become generation events, those Messages events or one whole message. Where the engine's
// server speaks Messages itself, body and answer are relayed as they are (MessagesRelay). Owned by
// the Gateway; one call per request, loop thread only.
#pragma once

#include <string>

#include "werk/gateway/call.hpp"
#include "werk/gateway/engine_call.hpp"
#include "werk/gateway/messages_request.hpp"
#include "werk/gateway/openai_chat.hpp"
#include "werk/http/exchange.hpp"

namespace werk::gateway {

class Messages {
 public:
  Messages(ChatSettings settings, PromptEdits edits, CallParts parts)
      : settings_(std::move(settings)), edits_(edits), parts_(parts) {}

  // Each answers the request, with an error if need be.
  async::awaitable<void> generate(http::Exchange& exchange, Call& call);
  async::awaitable<void> count(http::Exchange& exchange, Call& call);

 private:
  struct Job;
  struct Question {
    EngineWay way;
    std::string body;
  };

  async::awaitable<Result<Job>> read(EngineCall& engine_call, MessagesPurpose purpose);
  async::awaitable<Status> run_generation(http::Exchange& exchange, Call& call);
  async::awaitable<Status> translate(http::Exchange& exchange, Call& call, EngineCall& engine_call,
                                     runtime::Admission& admission, const std::string& model_id,
                                     Job& job);
  Result<Question> question_for(engine::Runtime& runtime, const std::string& model_id,
                                Job& job) const;
  async::awaitable<Status> run_count(http::Exchange& exchange, Call& call);

  ChatSettings settings_;
  PromptEdits edits_;
  CallParts parts_;
};

}  // namespace werk::gateway
