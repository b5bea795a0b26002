#include "werk/gateway/engine_error.hpp"

#include <fmt/format.h>

#include <charconv>
#include <string>

#include "werk/base/json_cursor.hpp"
#include "werk/base/text.hpp"
#include "werk/engine/masker.hpp"
#include "werk/http/redirect.hpp"

namespace werk::gateway {
namespace {

constexpr std::size_t kTextBytesMax = 2048;
constexpr std::uint64_t kRetryAfterMost = 3600;  // seconds

struct Details {
  std::string message;
  std::string type;
  std::string code;  // where it is a word
  std::string param;
  std::uint64_t status = 0;
  TokenOverflow overflow;
  bool bare_text = false;  // `"error": "text"`, and nothing else
};

std::string cut(std::string_view text) {
  text = trim(text);
  std::size_t end = std::min(text.size(), kTextBytesMax);
  while (end > 0 && end < text.size() && (static_cast<unsigned char>(text[end]) & 0xC0u) == 0x80u)
    --end;
  return printable(text.substr(0, end));
}

// A string, or any other value as it is written.
std::string as_text(std::string_view value) {
  return json_string(value).value_or(std::string(value));
}

Details read_object(std::string_view object) {
  Details details;
  JsonObjectCursor members(object);
  while (const auto member = members.next()) {
    if (member->kind() == JsonKind::null) continue;
    if (member->is("message")) details.message = cut(as_text(member->value));
    if (member->is("type")) details.type = as_text(member->value);
    if (member->is("code")) {
      details.status = json_unsigned(member->value).value_or(0);
      if (member->kind() == JsonKind::string) details.code = as_text(member->value);
    }
    if (member->is("param")) details.param = as_text(member->value);
    if (member->is("n_prompt_tokens"))
      details.overflow.prompt_tokens = json_unsigned(member->value).value_or(0);
    if (member->is("n_ctx"))
      details.overflow.context_tokens = json_unsigned(member->value).value_or(0);
  }
  return details;
}

Details read_value(std::string_view value) {
  if (json_kind(value) == JsonKind::object) return read_object(value);
  Details details;
  details.message = cut(as_text(value));
  return details;
}

Details read_body(std::string_view body) {
  const std::string_view text = trim_json(body);
  JsonScanner scanner(JsonScanLimits{.notes = JsonNotes::nothing});
  if (!scanner.feed(text) || !scanner.finish()) {
    Details details;
    details.message = cut(body);
    return details;
  }
  if (const auto error = find_member(text, "error"); error && *error != "null") {
    Details details = read_value(*error);
    details.bare_text = json_kind(*error) == JsonKind::string;
    return details;
  }
  if (const auto detail = find_member(text, "detail")) return read_value(*detail);
  return read_value(text);
}

// What servers mean by 404: a model that they don't have, said by OpenAI's code, vLLM's type or
// that of Messages; a generation that failed, said by a bare text (mlx_lm.server); else a route
// that they don't have.
ErrorCode meaning_of_404(const Details& details) {
  const bool names_model = details.code == "model_not_found" || details.type == "NotFoundError" ||
                           (details.type == "not_found_error" && details.status == 0);
  if (names_model) return ErrorCode::model_not_found;
  return details.bare_text ? ErrorCode::engine_failed : ErrorCode::unsupported;
}

// The number that follows these words; 0 where there is none.
std::uint64_t number_after(std::string_view text, std::string_view words) {
  const std::size_t at = text.find(words);
  std::uint64_t number = 0;
  if (at == std::string_view::npos) return number;
  text.remove_prefix(at + words.size());
  std::from_chars(text.data(), text.data() + text.size(), number);
  return number;
}

// vLLM names the parameter that is too large, and tells the numbers in its message alone: "This
// model's maximum context length is 1024 tokens. ... (parameter=input_tokens, value=1025)". It
// stops counting where the context ends.
bool overflows_as_vllm(std::uint64_t status, Details& details) {
  if (status != 400 || details.param != "input_tokens") return false;
  TokenOverflow numbers;
  numbers.context_tokens = number_after(details.message, "maximum context length is ");
  numbers.prompt_tokens = number_after(details.message, "parameter=input_tokens, value=");
  if (numbers.context_tokens > 0 && numbers.prompt_tokens > 0) details.overflow = numbers;
  return true;
}

Error classify(std::uint64_t status, Details details) {
  const bool too_long = details.type == "exceed_context_size_error" ||
                        details.code == "context_length_exceeded" ||
                        overflows_as_vllm(status, details);
  Error error;
  error.origin = Origin::engine;
  error.message = details.message.empty()
                      ? fmt::format("the engine answered {} without a reason", status)
                      : std::move(details.message);
  if (too_long) {
    error.code = ErrorCode::context_length_exceeded;
    error.param = "messages";
    if (details.overflow.context_tokens > 0) {
      error.overflow = details.overflow;
      error.message = fmt::format(
          "the prompt has {} tokens and the model's context holds {}; shorten the conversation or "
          "serve the model with a larger --ctx-size",
          details.overflow.prompt_tokens, details.overflow.context_tokens);
    }
    return error;
  }
  // Said by another node, of a request that this one sent on.
  if (details.code == "loop_detected") {
    error.code = ErrorCode::loop_detected;
    return error;
  }
  switch (status) {
    case 400:
    case 422: error.code = ErrorCode::invalid_request; return error;
    case 413: error.code = ErrorCode::payload_too_large; return error;
    case 404:
      error.code = meaning_of_404(details);
      if (error.code != ErrorCode::engine_failed) return error;
      break;
    case 405:
    case 501: error.code = ErrorCode::unsupported; return error;
    case 429:
    case 503: error.retry_after = std::chrono::seconds(1); break;
    default: break;
  }
  error.code = ErrorCode::engine_failed;
  error.message = fmt::format("the engine failed: {}", error.message);
  return error;
}

}  // namespace

Error engine_error_from(unsigned status, std::string_view body) {
  return classify(status, read_body(body));
}

Error engine_error_in_stream(std::string_view value) {
  Details details = read_value(value);
  const std::uint64_t status = details.status >= 400 && details.status < 600 ? details.status : 500;
  return classify(status, std::move(details));
}

bool means_away(int status, const http::Headers& headers) {
  const bool is_away = status == 502 || status == 503 || status == 504;
  return is_away && !headers.find("Retry-After");
}

Error engine_refusal(int status, const http::Headers& headers, std::string_view body,
                     const engine::HttpTarget& target) {
  if (http::is_redirect(status)) {
    const std::string leads = http::redirect_text(status, headers.find("Location").value_or(""));
    return {ErrorCode::engine_failed, "the engine " + leads, Origin::engine};
  }
  // Before it is cut, so that no piece of a key stays.
  std::string said(body);
  hide_key(said, target);
  Error error = engine_error_from(static_cast<unsigned>(status), said);
  const bool may_pass = status == 429 || (status == 503 && headers.find("Retry-After"));
  if (target.ownership == engine::Ownership::owned || !may_pass) return error;
  // The line of an engine that others use too is no fault: the client waits as it would there.
  error.code = status == 429 ? ErrorCode::queue_full : ErrorCode::capacity;
  const auto seconds = json_unsigned(headers.find("Retry-After").value_or(""));
  if (seconds) error.retry_after = std::chrono::seconds(std::min(*seconds, kRetryAfterMost));
  return error;
}

void hide_key(std::string& text, const engine::HttpTarget& target) {
  constexpr std::string_view kScheme = "Bearer ";
  std::string_view key = target.authorization;
  if (key.starts_with(kScheme)) key.remove_prefix(kScheme.size());
  if (key.empty()) return;
  engine::Masker masker;
  masker.hide(std::string(key), "<key>");
  text = masker.apply(text);
}

}  // namespace werk::gateway
