// The Messages dialect's ways of answering: its event stream, or one whole message. Each owned by
// the call it answers; loop thread only.
#pragma once

#include <string>

#include "werk/async/clock.hpp"
#include "werk/gateway/call.hpp"
#include "werk/gateway/chunk_events.hpp"
#include "werk/gateway/engine_call.hpp"
#include "werk/gateway/messages_fold.hpp"
#include "werk/gateway/messages_stream.hpp"
#include "werk/http/exchange.hpp"

namespace werk::gateway {

class MessagesStreamAnswer final : public AnswerWriter {
 public:
  // `facts` are the filter's that feeds sink().
  MessagesStreamAnswer(http::Exchange& exchange, Call& call, async::Clock& clock,
                       const ChatStreamFacts& facts, MessagesStreamOptions options,
                       ChunkEventsOptions events);

  ChunkSink& sink() override { return events_; }
  // A prompt that takes long to read is bridged with pings, once the message has begun.
  async::awaitable<Status> flush(const ChatStreamFacts& facts) override;
  async::awaitable<Status> end(const ChatStreamFacts& facts) override;

 private:
  async::awaitable<Status> write();

  http::Exchange& exchange_;
  Call& call_;
  async::Clock& clock_;
  async::TimePoint written_at_;
  std::string out_;
  MessagesStream stream_;
  ChunkEvents events_;
};

class MessagesWholeAnswer final : public AnswerWriter {
 public:
  MessagesWholeAnswer(http::Exchange& exchange, Call& call, const ChatStreamFacts& facts,
                      MessagesFoldOptions options, ChunkEventsOptions events);

  ChunkSink& sink() override { return events_; }
  async::awaitable<Status> flush(const ChatStreamFacts& facts) override;
  async::awaitable<Status> end(const ChatStreamFacts& facts) override;

 private:
  http::Exchange& exchange_;
  Call& call_;
  MessagesFold fold_;
  ChunkEvents events_;
};

}  // namespace werk::gateway
