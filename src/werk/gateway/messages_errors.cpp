#include "werk/gateway/messages_errors.hpp"

#include <fmt/format.h>

#include "werk/base/json_cursor.hpp"
#include "werk/base/text.hpp"
#include "werk/gateway/errors.hpp"

namespace werk::gateway {
namespace {

// Clients find the member at fault by the message alone, since the envelope has no place for it.
std::string message_of(const Error& error) {
  constexpr std::string_view kTooLong = "prompt is too long";
  if (error.code != ErrorCode::context_length_exceeded) return printable(error.message);
  if (error.overflow && error.overflow->context_tokens > 0) {
    return fmt::format("{}: {} tokens > {} maximum", kTooLong, error.overflow->prompt_tokens,
                       error.overflow->context_tokens);
  }
  return fmt::format("{}: {}", kTooLong, printable(error.message));
}

}  // namespace

std::string messages_error_body(const Error& error, std::string_view request_id) {
  std::string body = fmt::format(R"({{"type":"error","error":{{"type":"{}","message":)",
                                 row_of(error.code).anthropic_type);
  append_json_string(body, message_of(error));
  body.push_back('}');
  if (!request_id.empty()) {
    body += R"(,"request_id":)";
    append_json_string(body, printable(request_id));
  }
  body.push_back('}');
  return body;
}

std::string messages_error_event(const Error& error, std::string_view request_id) {
  return fmt::format("event: error\ndata: {}\n\n", messages_error_body(error, request_id));
}

const ErrorSpeech& messages_errors() {
  static constexpr ErrorSpeech kSpeech{messages_error_body, messages_error_event};
  return kSpeech;
}

}  // namespace werk::gateway
