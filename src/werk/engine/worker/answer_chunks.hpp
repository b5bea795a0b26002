// AnswerChunks: writes a worker's generation as the chunks of an OpenAI chat stream, which is how
// every engine's answer reaches the gateway: a progress chunk with the prompt's length first, text
// and calls, the finish reason, usage, and last the word that ends a stream. Stop strings, whole
// characters and tool calls are dealt with here. One per generation; a plain value, any thread.
#pragma once

#include <deque>
#include <optional>
#include <string>

#include "werk/base/result.hpp"
#include "werk/base/utf8_joiner.hpp"
#include "werk/chat/event.hpp"
#include "werk/engine/worker/chat_task.hpp"
#include "werk/engine/worker/stop_gate.hpp"
#include "werk/engine/worker/tool_text.hpp"

namespace werk::engine::worker {

class AnswerChunks final : private chat::EventSink {
 public:
  // `name` is what the model is called in chunks; `seed` makes the ids of answer and calls.
  AnswerChunks(const ChatTask& task, std::string name, std::string seed);

  void started(const GenerationStarted& started);
  void token(const TokenEvent& token);
  // A stop string was met: the generation may be cancelled, and nothing more of it is written but
  // its end.
  bool met_stop() const { return gate_.matched().has_value(); }
  void finished(const GenerationFinished& finished);

  // The next chunk's text, in order; none if there is none yet.
  std::optional<std::string> next();

 private:
  Status event(const chat::GenerationEvent& event) override;
  void text(std::string_view piece);
  void delta(const std::string& members);
  void chunk(std::string_view choices, std::string_view more = {});

  std::string head_;  // what all chunks begin with
  bool tells_stop_ = false;
  bool said_role_ = false;
  Utf8Joiner joiner_;
  StopGate gate_;
  std::optional<ToolText> tools_;
  std::uint64_t tokens_ = 0;  // until the stop string was met
  std::deque<std::string> chunks_;
};

// What ends the stream.
inline constexpr std::string_view kStreamEnd = "[DONE]";

}  // namespace werk::engine::worker
