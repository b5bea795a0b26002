// The one table that maps each error code to a status and a dialect's words, and the envelopes made
// from it. Everything that a client is told about a failure passes through here. Pure.
#pragma once

#include <string>
#include <string_view>

#include "werk/base/error.hpp"
#include "werk/http/message.hpp"

namespace werk::gateway {

struct ErrorRow {
  int status = 500;
  std::string_view openai_type;
  std::string_view openai_code;
  std::string_view anthropic_type;
};

ErrorRow row_of(ErrorCode code);

// `{"error":{"message","type","code","param"}}`, with "origin" of the fault beside them.
std::string openai_error_body(const Error& error);
// The same as the last event of a stream that has begun.
std::string openai_error_event(const Error& error);
// How a dialect tells a failure: as a body, or as the last event of a stream that has begun.
struct ErrorSpeech {
  std::string (*body)(const Error& error, std::string_view request_id);
  std::string (*event)(const Error& error, std::string_view request_id);
};
const ErrorSpeech& openai_errors();

// Status, content type and Retry-After (1 to 60 s) where waiting helps.
http::ResponseHead error_head(const Error& error);

// What the HTTP server says by itself, in the same envelope.
std::string server_error_body(int status, std::string_view message);

}  // namespace werk::gateway
