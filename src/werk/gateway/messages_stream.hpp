// Writes an answer as the event stream of the Messages dialect (engines.md 10.4): generation events
// in, bytes of server-sent events out, appended to the caller's string. Exactly one end:
// message_stop or an error event, and nothing behind it. The caller owns it, one per answer, and
// keeps the string alive; a plain value without I/O, any thread.
#pragma once

#include <string>
#include <string_view>

#include "werk/base/error.hpp"
#include "werk/chat/event.hpp"
#include "werk/gateway/messages_blocks.hpp"

namespace werk::gateway {

// Thinking blocks need a signature, and some clients send a block back only if it has one. Werk
// verifies none: it gives this mark.
inline constexpr std::string_view kThinkingSignature = "d2Vyaw==";

// The event that says nothing; allowed anywhere, also before the message began.
inline constexpr std::string_view kMessagesPing = "event: ping\ndata: {\"type\":\"ping\"}\n\n";

// `{"input_tokens",...}` as it stands in messages and events.
std::string usage_json(const MessageUsage& usage);

// The steps of a message as events; numbers the blocks.
class MessageEventWriter final : public BlockSink {
 public:
  MessageEventWriter(std::string message_id, std::string client_model, std::string& out)
      : message_id_(std::move(message_id)), client_model_(std::move(client_model)), out_(out) {}

  void start(const MessageUsage& usage) override;
  void open(const BlockHead& head) override;
  void delta(std::string_view text) override;
  void close() override;
  void end(const MessageEnd& end) override;

 private:
  std::string message_id_;
  std::string client_model_;
  std::string& out_;
  std::uint64_t index_ = 0;
  BlockKind kind_ = BlockKind::text;
  std::string delta_head_;  // what each delta of the open block begins with
};

struct MessagesStreamOptions {
  std::string message_id = {};    // "msg_..."
  std::string client_model = {};  // as the client wrote it, decoded
  std::string request_id = {};    // for the error event
  MessageBlocksOptions blocks = {};
};

class MessagesStream final : public chat::EventSink {
 public:
  MessagesStream(MessagesStreamOptions options, std::string& out);

  // Fails as MessageBlocks does; error() is then to be called with that failure.
  Status event(const chat::GenerationEvent& event) override;
  // A sign of life, at any time; also before the answer began, where clients skip it.
  void ping();
  // The stream's end after a failure. Nothing is written if it has ended already.
  void error(const Error& error);

  bool started() const { return blocks_.started(); }
  // Whether message_stop or the error was written.
  bool ended() const { return ended_; }

 private:
  std::string request_id_;
  std::string& out_;
  MessageEventWriter writer_;
  MessageBlocks blocks_;
  bool ended_ = false;
};

}  // namespace werk::gateway
