// Folds generation events into one whole message of the Messages dialect, by the same state machine
// as the stream, so that both say the same. Bounded. The caller owns the fold, one per answer; a
// plain value without I/O, any thread.
#pragma once

#include <string>
#include <string_view>

#include "werk/chat/event.hpp"
#include "werk/gateway/messages_blocks.hpp"

namespace werk::gateway {

struct MessagesFoldOptions {
  std::string message_id = {};    // "msg_..."
  std::string client_model = {};  // as the client wrote it, decoded
  std::size_t bytes_max = std::size_t{64} << 20;
  MessageBlocksOptions blocks = {};
};

class MessagesFold final : public chat::EventSink {
 public:
  explicit MessagesFold(MessagesFoldOptions options);

  // Fails as MessageBlocks does, and with engine_failed when the answer grows over its limit.
  Status event(const chat::GenerationEvent& event) override;
  // The whole message's JSON. A call whose arguments a limit cut has the input {}. Fails with
  // engine_failed if the answer has no end.
  Result<std::string> finish() const;

 private:
  class Collector final : public BlockSink {
   public:
    void start(const MessageUsage&) override {}
    void open(const BlockHead& head) override;
    void delta(std::string_view text) override { text_ += text; }
    void close() override;
    void end(const MessageEnd& end) override { end_ = end; }

    std::size_t size() const { return content_.size() + text_.size(); }
    const std::string& content() const { return content_; }
    const std::optional<MessageEnd>& last() const { return end_; }

   private:
    std::string content_;  // JSON of the closed blocks
    BlockHead head_;
    std::string text_;  // of the open one
    std::optional<MessageEnd> end_;
  };

  std::string message_id_;
  std::string client_model_;
  std::size_t bytes_max_;
  Collector collector_;
  MessageBlocks blocks_;
};

}  // namespace werk::gateway
