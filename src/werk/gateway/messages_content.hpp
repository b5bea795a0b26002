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
enum class ContentPlace : std::uint8_t { system, user, assistant, tool_result };

// Appends to `parts`. In `tool_result` and `system` only texts and images (texts) come out. Empty
// texts are left out. Fails with invalid_request or unsupported, and the block's path as `param`.
Status read_messages_content(std::string_view content, const std::string& where, ContentPlace place,
                             std::vector<chat::Part>& parts);

}  // namespace werk::gateway
