// Any bytes as a request body: what is accepted is rewritten to valid JSON that is accepted again,
// with the engine's model name, equally each time; and a second rewriting changes nothing more.
#include <cstdint>
#include <string_view>

#include "werk/base/assert.hpp"
#include "werk/base/json_cursor.hpp"
#include "werk/gateway/openai_request.hpp"

namespace werk::gateway {

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::string_view body(reinterpret_cast<const char*>(data) + 1, size - 1);
  const auto view = read_chat_request(body);
  if (!view) return 0;
  EngineEdits edits;
  edits.engine_model = "engine";
  edits.text_parts = (data[0] & 1u) != 0 ? TextParts::join : TextParts::keep;
  if ((data[0] & 2u) != 0) edits.defaults.emplace_back("seed", "1");
  const std::string once = rewrite_chat_request(body, *view, edits);
  WERK_ASSERT(once == rewrite_chat_request(body, *view, edits));
  const auto again = read_chat_request(once);
  WERK_ASSERT(again);
  WERK_ASSERT(again->model == "engine" && again->stream && again->include_usage &&
              again->return_progress);
  WERK_ASSERT(again->choices == view->choices && again->message_count == view->message_count);
  WERK_ASSERT(again->has_tools == view->has_tools && again->max_tokens == view->max_tokens);
  WERK_ASSERT(!again->messages_need_edits);
  WERK_ASSERT(!find_member(once, "id_slot"));
  WERK_ASSERT(rewrite_chat_request(once, *again, edits) == once);
  return 0;
}

}  // namespace werk::gateway
