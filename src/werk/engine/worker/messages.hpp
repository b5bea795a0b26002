// The messages of the worker protocol (docs/worker-protocol.md) as plain values, read from a
// frame's text with every member checked, and written for the worker. Unknown members are ignored;
// an unknown type, a missing member or one of a wrong type or range is an error that names it.
// Pure; any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "werk/base/result.hpp"
#include "werk/chat/event.hpp"

namespace werk::engine::worker {

inline constexpr std::uint64_t kProtocolVersion = 1;

using RequestId = std::uint64_t;

// ---- from the worker

struct Hello {
  std::uint64_t protocol = 0;
  std::string engine;
  std::string engine_version;
  std::vector<std::string> can;
};
struct Progress {
  RequestId id = 0;
  std::string what;
  std::optional<double> fraction;  // 0 to 1
};
struct Loaded {
  RequestId id = 0;
  std::uint64_t context_tokens = 0;  // prompt and answer together; 0: unknown
  bool takes_tools = false;          // by the chat template
  bool takes_later_system = true;
};
struct Unloaded {
  RequestId id = 0;
};
struct GenerationStarted {
  RequestId id = 0;
  std::uint64_t prompt_tokens = 0;
  std::uint64_t cached_tokens = 0;
};
struct TokenEvent {
  RequestId id = 0;
  std::string bytes;  // may end inside a character
  std::uint64_t tokens = 1;
};
enum class EndReason : std::uint8_t { stop, length, context, cancelled };
struct GenerationFinished {
  RequestId id = 0;
  EndReason reason = EndReason::stop;
  chat::Usage usage;
};
struct Counted {
  RequestId id = 0;
  std::uint64_t tokens = 0;
};
struct Pong {
  RequestId id = 0;
};
struct Failed {
  RequestId id = 0;
  Error error;
};
struct Fault {
  std::string message;
};

using FromWorker = std::variant<Hello, Progress, Loaded, Unloaded, GenerationStarted, TokenEvent,
                                GenerationFinished, Counted, Pong, Failed, Fault>;

// Fails with engine_failed, origin engine, and the rule that was broken.
Result<FromWorker> read_message(std::string_view text);

// ---- to the worker: each gives a frame's text

struct LoadOptions {
  std::string device;  // empty: the engine's own choice
  std::string dtype;   // likewise
  std::optional<std::uint32_t> threads;
  std::uint64_t context_tokens = 0;  // 0: the model's own
};
std::string load_message(RequestId id, const std::string& folder, const LoadOptions& options);
std::string unload_message(RequestId id);
std::string cancel_message(RequestId id);
std::string stop_message();

}  // namespace werk::engine::worker
