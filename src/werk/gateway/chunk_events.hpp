// Turns the chunks of an OpenAI chat stream, as ChatStreamFilter lets them through, into neutral
// generation events of choice 0. Started comes as soon as the filter knows the prompt's cost, at
// the latest before the first delta; Finished comes last, when usage is known too. The caller owns
// it, one per call, and keeps the filter and the sink alive; a plain value without I/O, any thread.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "werk/base/result.hpp"
#include "werk/chat/event.hpp"
#include "werk/gateway/openai_stream.hpp"

namespace werk::gateway {

// Joins JSON string text that was cut between the two escapes of a surrogate pair.
class EscapedText {
 public:
  // The next fragment as written between its quotes; what it means so far.
  std::string take(std::string_view between_quotes);
  // What a pair that never came leaves: U+FFFD or nothing.
  std::string rest();

 private:
  std::string held_;  // an escaped high surrogate
};

struct ChunkEventsOptions {
  // For engines that tell the prompt's cost only at the end: a count made before.
  chat::Started counted = {};
  // The tokens of one sequence's context: an answer of reason "length" that fills them was ended by
  // the context. Unknown: such an answer counts as ended by its limit.
  std::optional<std::uint64_t> context_tokens = std::nullopt;
};

class ChunkEvents final : public ChunkSink {
 public:
  // `facts` are the filter's; `sink` gets the events.
  ChunkEvents(const ChatStreamFacts& facts, chat::EventSink& sink, ChunkEventsOptions options = {})
      : facts_(facts), sink_(sink), options_(options) {}

  // A failure is the sink's.
  Status chunk(std::span<const std::string_view> pieces) override;
  Status similar(std::span<const std::string_view> pieces, std::string_view choices) override;
  // Call after each of the filter's events: yields Started from a progress event, of which no
  // chunk comes.
  Status advance();
  // Call once, after the filter's finish() succeeded.
  Status finish();

 private:
  Status start();
  Status take_choices(std::string_view choices);
  Status take_choice(std::string_view choice);
  Status take_delta(std::string_view delta);
  Status take_call(std::string_view element);
  void take_stop(std::string_view word);

  const ChatStreamFacts& facts_;
  chat::EventSink& sink_;
  ChunkEventsOptions options_;
  std::string text_;  // the chunk at hand
  EscapedText content_;
  EscapedText reasoning_;
  std::map<std::uint32_t, EscapedText> arguments_;  // by call
  std::optional<std::string> stop_sequence_;
  bool started_ = false;
};

}  // namespace werk::gateway
