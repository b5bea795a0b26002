// AnswerReader: a streamed chat completion as the events that a command shows: text, reasoning, how
// much of the prompt is read, and at the end the facts. Fed with the bytes as they arrive, cut
// anywhere. An error that comes as an event is a failure with the node's words. A plain value.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "werk/base/result.hpp"
#include "werk/http/sse.hpp"

namespace werk::app {

struct AnswerListener {
  std::function<void(std::string_view text)> on_text;
  std::function<void(std::string_view text)> on_reasoning;
  std::function<void(std::uint64_t read, std::uint64_t all)> on_prompt;  // tokens
};

struct AnswerFacts {
  std::string finish_reason;
  std::optional<std::uint64_t> prompt_tokens;
  std::optional<std::uint64_t> cached_tokens;
  std::optional<std::uint64_t> answer_tokens;
};

class AnswerReader {
 public:
  explicit AnswerReader(AnswerListener listener) : listener_(std::move(listener)) {}

  // engine_failed for what is no such stream, and for an error within it.
  Status feed(std::string_view piece);
  // Whether its proper end has come.
  bool is_whole() const { return whole_; }
  const AnswerFacts& facts() const { return facts_; }

 private:
  Status take(std::string_view data);

  AnswerListener listener_;
  http::SseParser parser_;
  AnswerFacts facts_;
  bool whole_ = false;
};

}  // namespace werk::app
