// Folds the chunks of a streamed chat completion, as ChatStreamFilter lets them through, into one
// whole answer. Text, ids and numbers keep the engine's own spelling and the members the order of
// llama-server's whole answers, so that the answer equals the one the engine would have given whole
// (apart from id, time and timings). Bounded. The caller owns the fold, one per call; a plain value
// without I/O, any thread.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "werk/base/result.hpp"
#include "werk/gateway/openai_stream.hpp"

namespace werk::gateway {

struct ChatFoldOptions {
  std::string client_model;  // as the client wrote it, decoded
  std::size_t bytes_max = std::size_t{64} << 20;
  // For engines that tell none.
  std::string default_id = {};
  std::int64_t default_created = 0;  // seconds since 1970
};

class ChatFold final : public ChunkSink {
 public:
  explicit ChatFold(ChatFoldOptions options) : options_(std::move(options)) {}

  // Takes one chunk in. Fails with engine_failed when the answer grows over its limit.
  Status chunk(std::span<const std::string_view> pieces) override;
  Status similar(std::span<const std::string_view> pieces, std::string_view choices) override;
  // The whole answer's JSON. Usage is part of it if a usage chunk came: ask the filter for usage.
  // Call once, after the filter's finish() succeeded.
  std::string finish() const;

 private:
  struct Call {
    std::string id;
    std::string type;
    std::string name;
    std::string arguments;
  };
  // Strings as the engine spelled them, without quotes; other values whole.
  struct Choice {
    std::string content;
    std::string reasoning;
    std::string refusal;
    std::string finish_reason;
    std::string logprobs;          // elements of logprobs.content, joined
    std::string refusal_logprobs;  // and of logprobs.refusal
    std::vector<Call> calls;
  };

  Status take_choices(std::string_view choices);
  Status take_choice(std::string_view choice);
  static Status take_calls(Choice& choice, std::string_view tool_calls);
  static Status take_delta(Choice& choice, std::string_view delta);
  static void take_logprobs(Choice& choice, std::string_view logprobs);
  static void append_message(std::string& out, const Choice& choice);
  static void append_choice(std::string& out, const Choice& choice, std::size_t index);

  ChatFoldOptions options_;
  std::string text_;  // the chunk at hand
  std::size_t kept_ = 0;
  std::string id_;  // values with quotes
  std::string created_;
  std::string system_fingerprint_;
  std::string usage_;
  std::string timings_;
  std::vector<Choice> choices_;
};

}  // namespace werk::gateway
