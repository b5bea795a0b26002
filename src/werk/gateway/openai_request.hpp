// Reads and edits the body of a chat completion request without building a tree. ChatRequestReader
// scans the body as it arrives and, at its end, checks the members that Werk reads and tells what
// the rest of the gateway must know; what it doesn't read is the engine's matter.
// rewrite_chat_request makes the bytes for the engine by a closed list of edits; everything else
// stays byte for byte, and equal calls give equal bytes. Plain values, any thread; views point into
// the body, which the caller keeps.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "werk/base/json_scan.hpp"

namespace werk::gateway {

enum class ToolChoice : std::uint8_t { unset, automatic, none, required, named };

// An optional member that is null counts as absent, everywhere.
struct ChatRequestView {
  std::optional<std::string> model;  // decoded
  bool stream = false;
  bool include_usage = false;    // stream_options.include_usage
  bool return_progress = false;  // llama-server's extension
  std::uint32_t choices = 1;     // n: what the call weighs
  bool has_tools = false;        // a list that isn't empty
  ToolChoice tool_choice = ToolChoice::unset;
  std::optional<std::uint64_t>
      max_tokens;  // max_completion_tokens, else max_tokens; negative ones mean no limit
  bool has_response_format = false;  // other than {"type":"text"}
  bool has_images = false;
  bool has_audio = false;
  bool has_other_media = false;   // video, files
  bool has_remote_media = false;  // an address that the engine would fetch
  std::size_t message_count = 0;

  // For rewrite_chat_request.
  bool messages_need_edits = false;  // null members, or a message without content
  bool has_text_lists = false;       // content given as a list of text parts only
  ByteRange object;                  // of the body
};

class ChatRequestReader {
 public:
  ChatRequestReader();

  // The next piece of the body. Fails with invalid_request as soon as the body can't be right any
  // more.
  Status feed(std::string_view piece);
  // `body` is all that was fed. Fails with invalid_request, origin client, and the member at fault
  // as `param`.
  Result<ChatRequestView> finish(std::string_view body);

 private:
  JsonScanner scanner_;
};

// Both steps at once, for a body that is there.
Result<ChatRequestView> read_chat_request(std::string_view body);

// How content given as a list of text parts reaches the engine: as it is, or joined to one string
// with a line feed between the parts (as llama-server itself joins them for templates that know
// only strings). Lists with other parts stay.
enum class TextParts : std::uint8_t { keep, join };

// llama-server reads `tool_choice` as a string and ignores the object that names a function; there
// the one tool is sent alone and required.
enum class NamedTool : std::uint8_t { as_object, as_only_tool };

// Members to add where a request has none: name and JSON value. `max_tokens` counts as given under
// each of its names.
using RequestDefaults = std::vector<std::pair<std::string, std::string>>;

// Which members that not every engine knows this one takes (its ChatProfile).
struct TakenMembers {
  bool progress = true;           // `return_progress`
  bool stream_options = true;     // and in it the wish for usage
  std::string output_limit = {};  // the only name it knows for the output limit; empty: every one
};

struct EngineEdits {
  std::string engine_model;  // what the engine calls the model
  TakenMembers taken = {};
  TextParts text_parts = TextParts::keep;
  NamedTool named_tool = NamedTool::as_object;
  RequestDefaults defaults;
};

// The bytes for the engine. The closed list of edits:
//   `model` becomes the engine's name; `stream`, `stream_options.include_usage` and
//   `return_progress` become true, since Werk always streams, counts and watches progress, and the
//   latter two go where the engine doesn't take them; the output limit gets the engine's name; null
//   members of the body, of stream_options, of messages and of their tool calls go, except
//   `content`; a message that needs content and has none gets `"content":null` (engines require the
//   member); `id_slot` goes, since slots are given out by the engine alone, and `n_cmpl`,
//   llama-server's other name for `n`, which would escape the count of choices; text parts are
//   joined where asked; defaults are added.
std::string rewrite_chat_request(std::string_view body, const ChatRequestView& view,
                                 const EngineEdits& edits);

}  // namespace werk::gateway
