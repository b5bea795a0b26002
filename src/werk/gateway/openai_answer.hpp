// The OpenAI dialect's ways of answering a chat completion: its chunks written on as server-sent
// events, or folded into one whole answer. Each owned by the call it answers; loop thread only.
#pragma once

#include <string>

#include "werk/gateway/call.hpp"
#include "werk/gateway/engine_call.hpp"
#include "werk/gateway/openai_fold.hpp"
#include "werk/gateway/openai_stream.hpp"
#include "werk/http/exchange.hpp"

namespace werk::gateway {

class OpenAiStreamAnswer final : public AnswerWriter {
 public:
  OpenAiStreamAnswer(http::Exchange& exchange, Call& call)
      : exchange_(exchange), call_(call), writer_(out_) {}

  ChunkSink& sink() override { return writer_; }
  async::awaitable<Status> flush(const ChatStreamFacts& facts) override;
  async::awaitable<Status> end(const ChatStreamFacts& facts) override;

 private:
  http::Exchange& exchange_;
  Call& call_;
  std::string out_;
  ChunkWriter writer_;
};

class OpenAiWholeAnswer final : public AnswerWriter {
 public:
  OpenAiWholeAnswer(http::Exchange& exchange, Call& call, ChatFoldOptions options)
      : exchange_(exchange), call_(call), fold_(std::move(options)) {}

  ChunkSink& sink() override { return fold_; }
  async::awaitable<Status> flush(const ChatStreamFacts& facts) override;
  async::awaitable<Status> end(const ChatStreamFacts& facts) override;

 private:
  http::Exchange& exchange_;
  Call& call_;
  ChatFold fold_;
};

}  // namespace werk::gateway
