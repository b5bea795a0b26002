// Reads the body of a Messages request, or of a request to count its tokens, into the neutral
// vocabulary (engines.md 10.2). MessagesRequestReader scans the body as it arrives and translates
// it at the end. Members that Werk doesn't know are dropped wherever they stand, nulls count as
// absent, wrong types are invalid_request with the member's path as `param`. Plain values without
// I/O, any thread; equal bodies give equal requests.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "werk/base/json_scan.hpp"
#include "werk/chat/request.hpp"

namespace werk::gateway {

// The closed list of edits to a client's prompt. Each is made only so that conversations of one
// client share the beginning of their prompts (and so the engine's cache); none changes what the
// model is told to do.
//   attribution: Claude Code begins its system prompt with a line "x-anthropic-billing-header: ..."
//     meant for its own server, which changes with each conversation's first prompt
//     (clients.md 1.7). That line is taken out of the block of `system` that begins with it, with
//     the blank lines after it; an empty block goes. Recorded: claude-code-attribution-line.
struct PromptEdit {
  std::string_view name;
  std::string_view line_begins_with;
};

inline constexpr std::array<PromptEdit, 1> kPromptEdits = {{
    {"attribution", "x-anthropic-billing-header:"},
}};

enum class PromptEdits : std::uint8_t { apply, none };

// Generating needs `max_tokens`; counting ignores it, `stream` and the sampling members.
enum class MessagesPurpose : std::uint8_t { generate, count };

struct MessagesRequest {
  std::optional<std::string> model;  // never empty
  bool stream = false;
  bool edited = false;                   // whether one of kPromptEdits was made
  std::size_t dropped_server_tools = 0;  // tools that only the original's servers can run
  chat::Request chat;
};

class MessagesRequestReader {
 public:
  explicit MessagesRequestReader(MessagesPurpose purpose, PromptEdits edits = PromptEdits::apply);

  // The next piece of the body. Fails with invalid_request as soon as the body can't be right any
  // more.
  Status feed(std::string_view piece);
  // `body` is all that was fed. Fails with invalid_request or unsupported, origin client.
  Result<MessagesRequest> finish(std::string_view body);

 private:
  MessagesPurpose purpose_;
  PromptEdits edits_;
  JsonScanner scanner_;
};

// Both steps at once, for a body that is there.
Result<MessagesRequest> read_messages_request(std::string_view body, MessagesPurpose purpose,
                                              PromptEdits edits = PromptEdits::apply);

}  // namespace werk::gateway
