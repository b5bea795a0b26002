// Reads the content of one turn of a Messages request (engines.md 10.2: a string or a list of
// blocks) into neutral parts. What only the original's servers could act on is dropped, what would
// change the meaning if it were dropped is refused with its path. Pure functions, any thread; the
// JSON must have been accepted by a JsonScanner.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "werk/base/result.hpp"
#include "werk/chat/request.hpp"

namespace werk::gateway {

// Where the content stands, which decides the blocks that may be in it.
enum class ContentPlace : std::uint8_t { system, user, assistant, tool_result, document };

// Appends to `parts`. In `tool_result`, `document` and `system` only texts and images (texts) come
// out. Empty texts are left out. Fails with invalid_request or unsupported, and the block's path as
// `param`; but what is unsupported in a tool's result becomes a text that says so, since the client
// can't take back what its tool has read, and a refusal would end the conversation.
Status read_messages_content(std::string_view content, const std::string& where, ContentPlace place,
                             std::vector<chat::Part>& parts);

}  // namespace werk::gateway
