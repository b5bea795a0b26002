// The vocabulary of failure. An Error is a plain value that says what went wrong (code), in whose
// part (origin), in a sentence for a person, and, where waiting helps, after how long. It is made
// where the fault is known and travels unchanged to the edge, where gateway/errors.cpp maps the
// code to a status and a dialect's envelope. Messages name the fault and the way out; they hold no
// secret and no path of the machine unless the person asking is the one at the terminal.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace werk {

enum class ErrorCode : std::uint8_t {
  invalid_request,          // the caller's request is wrong and will stay wrong
  unauthorized,             // no key or a wrong one
  forbidden,                // a Host or an origin that is not served
  model_not_found,          // no installed model of that name
  route_not_found,          // no such path
  method_not_allowed,       // the path exists, the method does not
  payload_too_large,        // over a body limit
  context_length_exceeded,  // the prompt is longer than the runtime's context
  model_unusable,  // the model can never run here as it is: missing or corrupt file, unknown
                   // architecture
  unsupported,     // asked for something this model or engine cannot do
  loop_detected,   // the request goes round between nodes
  queue_full,      // the waiting line of a runtime is full
  capacity,        // every resident runtime is in use, or no place came free in time
  draining,        // the node is shutting down
  unloaded,        // somebody unloaded the model at once while the call ran or waited
  start_failed,    // the engine did not come up; a later try may succeed
  engine_failed,   // the engine died or answered nonsense
  engine_timeout,  // the engine made no progress within a limit
  cancelled,       // the caller left; nobody reads this one
  not_found,       // a file, a model id or an engine that a command names does not exist
  conflict,        // it exists already, or somebody else holds it
  io,              // the operating system refused: permissions, disk full, network
  internal,        // a fault of Werk's own
};

enum class Origin : std::uint8_t { client, node, engine };

// How long a prompt is and how long it may be, in tokens, where the engine told.
struct TokenOverflow {
  std::uint64_t prompt_tokens = 0;
  std::uint64_t context_tokens = 0;
};

struct [[nodiscard]] Error {
  ErrorCode code = ErrorCode::internal;
  std::string message;
  Origin origin = Origin::node;
  std::optional<std::chrono::seconds> retry_after = std::nullopt;  // sent as Retry-After, 1 to 60 s
  std::string param = {};                                // the request member at fault, if one is
  std::optional<TokenOverflow> overflow = std::nullopt;  // with context_length_exceeded
};

// The code's own name, as it stands in logs and in JSON ("engine_failed").
std::string_view name_of(ErrorCode code);
std::string_view name_of(Origin origin);

}  // namespace werk
