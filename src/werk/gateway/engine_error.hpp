// What an engine's error means to the caller: from the status and body of a refused request, or
// from an error inside a stream. Classified by status and type first, never by the text
// (llama-server's types: context overflow has its own). Pure functions; the text of the engine is
// cut to 2 KB and made printable.
#pragma once

#include <string>
#include <string_view>

#include "werk/base/error.hpp"
#include "werk/engine/engine.hpp"
#include "werk/http/headers.hpp"

namespace werk::gateway {

// `body` may be the JSON of any dialect, text, HTML or empty.
Error engine_error_from(unsigned status, std::string_view body);

// The same of a whole refusal by this target: a redirect, which is never followed, names the host
// it leads to; a full line that isn't ours goes on to the client with its Retry-After.
Error engine_refusal(int status, const http::Headers& headers, std::string_view body,
                     const engine::HttpTarget& target);
// A gateway or an engine that says that it can't answer now, and not after how long.
bool means_away(int status, const http::Headers& headers);
// Some say back which key they refuse.
void hide_key(std::string& text, const engine::HttpTarget& target);

// `error` is the JSON value found in a stream: an object or a string. Its own numeric code stands
// for the status.
Error engine_error_in_stream(std::string_view error);

}  // namespace werk::gateway
