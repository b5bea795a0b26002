// What a generation says while it runs, in words that belong to no dialect: engines yield these
// events, dialects write them. First Started, then deltas in the order of the answer, last
// Finished; a failure is a Status of whoever yields them, never an event. Plain data; any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>

#include "werk/base/result.hpp"

namespace werk::chat {

struct Usage {
  std::uint64_t prompt_tokens = 0;  // cached ones included
  std::uint64_t cached_tokens = 0;
  std::uint64_t completion_tokens = 0;  // reasoning included
};

// The prompt's cost, known before any token of the answer.
struct Started {
  std::uint64_t prompt_tokens = 0;  // cached ones included
  std::uint64_t cached_tokens = 0;
};

// Fragments may end anywhere, even inside a UTF-8 sequence.
struct TextDelta {
  std::string text;
};

struct ReasoningDelta {
  std::string text;
};

// A fragment of the call of that index. Id and name come with the first fragment or later, once;
// fragments of several calls may be mixed.
struct ToolCallDelta {
  std::uint32_t index = 0;
  std::string id;
  std::string name;
  std::string arguments;  // JSON text when joined
};

enum class FinishReason : std::uint8_t {
  stop,            // the model ended by itself or at a stop sequence
  length,          // at the request's limit
  context,         // at the end of the model's context
  tool_calls,      // ended to have its calls run
  content_filter,  // refused
};

struct Finished {
  FinishReason reason = FinishReason::stop;
  std::optional<std::string> stop_sequence;  // the one met, if the engine tells
  std::optional<Usage> usage;                // none if the engine never told
};

using GenerationEvent = std::variant<Started, TextDelta, ReasoningDelta, ToolCallDelta, Finished>;

class EventSink {
 public:
  virtual ~EventSink() = default;
  // A failure ends the generation; no further events may follow.
  virtual Status event(const GenerationEvent& event) = 0;
};

}  // namespace werk::chat
