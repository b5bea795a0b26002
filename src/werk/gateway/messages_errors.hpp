// What a client of the Messages routes is told about a failure: the original's envelope with its
// types, from the one table in errors.hpp; status and Retry-After are the same as on the other
// routes (error_head). Pure functions, any thread.
#pragma once

#include <string>
#include <string_view>

#include "werk/base/error.hpp"
#include "werk/gateway/errors.hpp"

namespace werk::gateway {

// `{"type":"error","error":{"type","message"},"request_id"}`; an empty id is left out. An overflow
// of the context is told in the words that clients look for: "prompt is too long: N tokens > M
// maximum".
std::string messages_error_body(const Error& error, std::string_view request_id);
// The same as the last event of a stream that has begun.
std::string messages_error_event(const Error& error, std::string_view request_id);

const ErrorSpeech& messages_errors();

}  // namespace werk::gateway
