// What an engine's error means to the caller: from the status and body of a refused request, or
// from an error inside a stream. Classified by status and type first, never by the text
// (llama-server's types: context overflow has its own). Pure functions; the text of the engine is
// cut to 2 KB and made printable.
#pragma once

#include <string_view>

#include "werk/base/error.hpp"

namespace werk::gateway {

// `body` may be the JSON of any dialect, text, HTML or empty.
Error engine_error_from(unsigned status, std::string_view body);

// `error` is the JSON value found in a stream: an object or a string. Its own numeric code stands
// for the status.
Error engine_error_in_stream(std::string_view error);

}  // namespace werk::gateway
