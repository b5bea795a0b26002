// Base64 in its standard alphabet (RFC 4648, part 4), with OpenSSL. Pure; any thread.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace werk {

// What the text stands for; none if it is not base64 with its padding, in one line.
std::optional<std::string> decode_base64(std::string_view text);

}  // namespace werk
