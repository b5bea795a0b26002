// The one state machine between neutral generation events and an Anthropic message: Start, then
// blocks that are each opened, filled and closed once before the next, then the end. Both the
// stream and the whole answer are written from its steps. What can't be sent yet, because another
// call's arguments are still under way, is held back in the order of its appearance, bounded. The
// caller owns it, one per answer, and keeps the sink alive; a plain value without I/O, any thread.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "werk/base/json_scan.hpp"
#include "werk/base/result.hpp"
#include "werk/base/utf8_joiner.hpp"
#include "werk/chat/event.hpp"

namespace werk::gateway {

enum class BlockKind : std::uint8_t { thinking, text, tool_use };

struct BlockHead {
  BlockKind kind = BlockKind::text;
  std::string id = {};  // of a tool_use
  std::string name = {};
};

// As the original counts: `input_tokens` are those that were not cached. None: the engine didn't
// tell, which is no zero.
struct MessageUsage {
  std::optional<std::uint64_t> input_tokens = 0;
  std::optional<std::uint64_t> cache_read_input_tokens = 0;
  std::optional<std::uint64_t> output_tokens = 0;
};

enum class StopReason : std::uint8_t {
  end_turn,
  max_tokens,
  stop_sequence,
  tool_use,
  refusal,
  model_context_window_exceeded,
};

std::string_view name_of(StopReason reason);

struct MessageEnd {
  StopReason reason = StopReason::end_turn;
  std::optional<std::string> stop_sequence = std::nullopt;
  MessageUsage usage = {};
};

// start, (open, delta..., close)..., end: in this order and each in its place.
class BlockSink {
 public:
  virtual ~BlockSink() = default;
  virtual void start(const MessageUsage& usage) = 0;
  virtual void open(const BlockHead& head) = 0;
  virtual void delta(std::string_view text) = 0;  // UTF-8, never empty
  virtual void close() = 0;
  virtual void end(const MessageEnd& end) = 0;
};

// Whether the client gets thinking blocks. Where it forbade thinking and the engine thought anyway,
// they are left out.
enum class ThinkingBlocks : std::uint8_t { send, leave_out };

struct MessageBlocksOptions {
  ThinkingBlocks thinking = ThinkingBlocks::send;
  // The request's. Only one of these is told as `stop_sequence`; templates have others of their
  // own.
  std::vector<std::string> stop_sequences = {};
  std::string call_id_seed = {};  // random text, for calls that have no id
  std::size_t held_bytes_max = std::size_t{8} << 20;
};

class MessageBlocks {
 public:
  MessageBlocks(MessageBlocksOptions options, BlockSink& sink)
      : options_(std::move(options)), sink_(sink) {}

  // Fails with engine_failed when no message can be made of the answer: a call without a name, with
  // arguments that are no object although nothing cut them, or over a limit. The caller then ends
  // with the error. After Finished or a failure every event is ignored.
  Status event(const chat::GenerationEvent& event);
  // The answer ends here without an end: later events are ignored.
  void abandon() { state_ = State::over; }

  bool started() const { return state_ != State::waiting; }
  bool over() const { return state_ == State::over; }

 private:
  enum class State : std::uint8_t { waiting, running, over };
  enum class Ending : std::uint8_t { no, yes };
  struct Call {
    std::uint32_t index = 0;
    std::string id;
    std::string name;
    JsonScanner arguments;       // tells when they are whole
    bool has_arguments = false;  // other than blanks
    bool opened = false;
    Utf8Joiner joiner;
  };
  struct Held {
    BlockKind kind = BlockKind::text;
    std::size_t call = 0;
    std::string text;
  };

  Status take(const chat::Started& started);
  Status take(const chat::TextDelta& delta);
  Status take(const chat::ReasoningDelta& delta);
  Status take(const chat::ToolCallDelta& delta);
  Status take(const chat::Finished& finished);

  void start(const chat::Started& started);
  Status add(BlockKind kind, std::string text);
  Status add_arguments(std::size_t number, std::string text);
  Result<std::size_t> find_call(std::uint32_t index);
  Status hold(BlockKind kind, std::size_t call, std::string text);
  Status advance(Ending ending);
  void open(const Held& held);
  void close();
  Status flush_joiners();
  Status check_calls();
  StopReason stop_reason(const chat::Finished& finished, bool met_stop_sequence) const;
  std::string public_id(const Call& call, std::size_t number) const;

  MessageBlocksOptions options_;
  BlockSink& sink_;
  State state_ = State::waiting;
  chat::Started started_;
  std::optional<BlockKind> open_;
  std::size_t open_call_ = 0;  // where that is a tool_use
  std::vector<Call> calls_;
  std::deque<Held> held_;
  std::size_t held_bytes_ = 0;
  Utf8Joiner text_joiner_;
  Utf8Joiner thinking_joiner_;
};

}  // namespace werk::gateway
