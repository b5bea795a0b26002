#include "werk/app/commands/ask_stream.hpp"

#include <boost/json/parse.hpp>
#include <boost/json/value.hpp>

#include "werk/base/text.hpp"

namespace werk::app {

namespace json = boost::json;

namespace {

const json::value* at(const json::value& value, std::string_view pointer) {
  boost::system::error_code error;
  return value.find_pointer(pointer, error);
}

std::string_view text_at(const json::value& value, std::string_view pointer) {
  const json::value* found = at(value, pointer);
  return found != nullptr && found->is_string() ? std::string_view(found->get_string())
                                                : std::string_view();
}

std::optional<std::uint64_t> number_at(const json::value& value, std::string_view pointer) {
  const json::value* found = at(value, pointer);
  if (found == nullptr) return std::nullopt;
  boost::system::error_code error;
  const auto number = found->to_number<std::uint64_t>(error);
  return error ? std::nullopt : std::optional(number);
}

}  // namespace

Status AnswerReader::feed(std::string_view piece) {
  parser_.feed(piece);
  while (true) {
    auto item = parser_.next();
    if (!item) return pass_on(item);
    if (!*item) return {};
    if ((*item)->kind != http::SseItem::Kind::event) continue;
    Status taken = take((*item)->data);
    if (!taken) return taken;
  }
}

Status AnswerReader::take(std::string_view data) {
  if (data == "[DONE]") {
    whole_ = true;
    return {};
  }
  boost::system::error_code error;
  const json::value chunk = json::parse(data, error);
  if (error) return fail(ErrorCode::engine_failed, "the node's answer can't be read");
  if (at(chunk, "/error") != nullptr) {
    const std::string_view message = text_at(chunk, "/error/message");
    return fail(ErrorCode::engine_failed,
                message.empty() ? std::string("the answer failed") : printable(message));
  }
  const auto read = number_at(chunk, "/prompt_progress/processed");
  const auto all = number_at(chunk, "/prompt_progress/total");
  if (read && all && listener_.on_prompt) listener_.on_prompt(*read, *all);
  const std::string_view reasoning = text_at(chunk, "/choices/0/delta/reasoning_content");
  if (!reasoning.empty() && listener_.on_reasoning) listener_.on_reasoning(reasoning);
  const std::string_view text = text_at(chunk, "/choices/0/delta/content");
  if (!text.empty() && listener_.on_text) listener_.on_text(text);
  const std::string_view reason = text_at(chunk, "/choices/0/finish_reason");
  if (!reason.empty()) facts_.finish_reason = reason;
  if (const auto tokens = number_at(chunk, "/usage/prompt_tokens")) facts_.prompt_tokens = tokens;
  if (const auto tokens = number_at(chunk, "/usage/completion_tokens"))
    facts_.answer_tokens = tokens;
  if (const auto tokens = number_at(chunk, "/usage/prompt_tokens_details/cached_tokens"))
    facts_.cached_tokens = tokens;
  return {};
}

}  // namespace werk::app
