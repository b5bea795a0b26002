// The filter between an engine's stream of chat completion chunks and the client: an event's data
// in, chunks out. It puts the client's own model name into every chunk and mends what engines get
// wrong (roles, tool-call indices and ids, finish reasons, names of the reasoning field);
// everything else passes byte for byte. Progress and usage reach the client only if it asked. A
// stream without a finish reason for every choice is an error, never an end. The caller owns the
// filter, one per call; a plain value without I/O, any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "werk/base/json_scan.hpp"
#include "werk/base/result.hpp"
#include "werk/gateway/tool_call_ledger.hpp"

namespace werk::gateway {

// Where chunks go: to a client as events, or into the fold.
class ChunkSink {
 public:
  virtual ~ChunkSink() = default;
  // One chunk's JSON, without line feeds, as pieces to be joined. The views hold during the call
  // only.
  virtual Status chunk(std::span<const std::string_view> pieces) = 0;
  // A chunk that differs from one before it in its choices alone, which are given besides.
  virtual Status similar(std::span<const std::string_view> pieces, std::string_view choices) {
    static_cast<void>(choices);
    return chunk(pieces);
  }
};

// Writes chunks as server-sent events to the end of a string.
class ChunkWriter final : public ChunkSink {
 public:
  explicit ChunkWriter(std::string& out) : out_(out) {}
  Status chunk(std::span<const std::string_view> pieces) override;

 private:
  std::string& out_;
};

// What ends a chat stream, once, after everything else; never after an error.
inline constexpr std::string_view kChatStreamEnd = "data: [DONE]\n\n";

// Whether the client asked for it.
enum class Wanted : std::uint8_t { no, yes };

struct ChatStreamOptions {
  std::string client_model;  // as the client wrote it, decoded
  Wanted usage = Wanted::no;
  Wanted progress = Wanted::no;
  std::uint32_t choices = 1;
  std::string call_id_seed =
      {};  // random text; ids of calls that have none are "call_" + seed + number
};

struct PromptFacts {
  std::uint64_t prompt_tokens = 0;
  std::uint64_t cached_tokens = 0;
};

struct UsageFacts {
  std::uint64_t prompt_tokens = 0;
  std::optional<std::uint64_t> cached_tokens;  // none: the engine doesn't tell
  std::uint64_t completion_tokens = 0;         // of all choices together
};

// What became known so far; read it at any time.
struct ChatStreamFacts {
  std::optional<PromptFacts> started;  // from the first progress event, before any token
  std::optional<UsageFacts> usage;     // none if the engine never told
  std::uint64_t content_events =
      0;  // with text, reasoning or a piece of a call; above 0 means the first token came
  std::uint32_t tool_calls = 0;
  std::vector<std::string> finish_reasons;  // per choice, as the client sees them; empty = not yet
};

class ChatStreamFilter {
 public:
  explicit ChatStreamFilter(ChatStreamOptions options);

  // One event of the engine's stream. Fails with engine_failed (or what the engine's own error
  // means) when the event is an error, is no JSON, or breaks a limit; the stream must then end with
  // the error. Events after the end are ignored.
  Status event(std::string_view name, std::string_view data, ChunkSink& sink);
  // Whether the engine has said [DONE].
  bool done() const { return done_; }
  // The engine's stream has ended, with [DONE] or without. Emits the usage chunk if wanted; fails
  // with engine_failed if a choice has no finish reason. Afterwards the caller writes
  // kChatStreamEnd.
  Status finish(ChunkSink& sink);

  const ChatStreamFacts& facts() const { return facts_; }

 private:
  struct Choice {
    bool role_sent = false;
    bool has_calls = false;
  };
  // What stands around the choices of a chunk, as the engine sends it and as the client gets it.
  // Most chunks of a stream differ only in between: what is known of the rest isn't read again.
  struct Frame {
    std::string before;
    std::string behind;
    std::string before_sent;
    std::string behind_sent;
  };
  struct Chunk;

  enum class Place : std::uint8_t { alone, beside_choices };

  Status check(std::string_view text);
  std::string_view choices_in_frame(std::string_view text);
  Status framed(std::string_view list, ChunkSink& sink);
  void learn_frame(const Chunk& chunk);
  Status chunk(std::string_view text, ChunkSink& sink);
  // Whether there is any.
  Result<bool> choices(JsonSplice& splice, std::string_view list, Chunk& chunk);
  Status choice(JsonSplice& splice, std::string_view text, Chunk& chunk);
  Status delta(JsonSplice& splice, std::string_view text, std::uint32_t index);
  Status finish_reason(JsonSplice& splice, std::string_view text, std::uint32_t index);
  void note_progress(std::string_view progress);
  void hold_usage(Place place, const Chunk& chunk);

  ChatStreamOptions options_;
  std::string model_json_;
  JsonScanner scanner_;
  std::optional<Frame> frame_;
  std::vector<Choice> choices_;
  ToolCallLedger calls_;
  std::string usage_chunk_;  // held back until the end, with the client's model name
  int usage_rank_ = 0;       // how good the one held is
  std::uint32_t last_finished_ = 0;
  std::vector<std::uint64_t> completion_tokens_;  // by choice
  bool done_ = false;
  ChatStreamFacts facts_;
};

}  // namespace werk::gateway
