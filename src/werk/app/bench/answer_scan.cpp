#include "werk/app/bench/answer_scan.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <boost/json/parse.hpp>

#include "werk/base/json_cursor.hpp"
#include "werk/base/text.hpp"

namespace werk::app::bench {

namespace json = boost::json;

namespace {

constexpr std::size_t kErrorBytesMax = 500;

bool holds_text(std::string_view value) {
  const auto text = json_string_raw(value);
  return text && !text->empty();
}

bool is_string(std::string_view value, std::string_view text) {
  return json_string_raw(value) == text;
}

// Text, reasoning or a tool call in a chunk's delta.
bool holds_piece(std::string_view delta) {
  JsonObjectCursor members(delta);
  while (const auto member = members.next()) {
    if (member->is("content") || member->is("reasoning_content") || member->is("reasoning")) {
      if (holds_text(member->value)) return true;
    } else if (member->is("tool_calls")) {
      if (JsonArrayCursor(member->value).next()) return true;
    }
  }
  return false;
}

// The same of an event's delta, or of the beginning of a block.
bool holds_block_piece(std::string_view delta) {
  JsonObjectCursor members(delta);
  while (const auto member = members.next()) {
    if (member->is("text") || member->is("thinking") || member->is("partial_json")) {
      if (holds_text(member->value)) return true;
    } else if (member->is("type") && is_string(member->value, "tool_use")) {
      return true;
    }
  }
  return false;
}

tl::unexpected<Error> failed_answer(std::string_view data) {
  return fail(ErrorCode::engine_failed, Origin::engine, error_words(data));
}

}  // namespace

std::string error_words(std::string_view body) {
  const auto text_of = [](std::string_view object, std::string_view name) {
    const auto member = find_member(object, name);
    return member ? json_string(*member) : std::nullopt;
  };
  const std::string_view page = trim(body);
  const auto error = find_member(page, "error");
  auto words = error ? text_of(*error, "message") : std::nullopt;
  if (!words && error) words = json_string(*error);
  if (!words) words = text_of(page, "message");
  if (!words) words = text_of(page, "detail");
  const std::string_view whole = words ? trim(*words) : page;
  const std::string shown = printable(whole.substr(0, kErrorBytesMax));
  if (shown.empty()) return "no reason was given";
  return whole.size() > kErrorBytesMax ? shown + "..." : shown;
}

Error of_server(Error error) {
  constexpr std::string_view kEngine = "the engine";
  const std::size_t place = error.message.find(kEngine);
  if (place != std::string::npos) error.message.replace(place, kEngine.size(), "the server");
  return error;
}

Result<std::uint32_t> AnswerScan::feed(std::string_view bytes) {
  parser_.feed(bytes);
  std::uint32_t pieces = 0;
  while (true) {
    auto item = parser_.next();
    if (!item) return fail(of_server(std::move(item.error())));
    if (!*item) return pieces;
    if ((*item)->kind != http::SseItem::Kind::event) continue;
    const auto is_piece = take((*item)->data);
    if (!is_piece) return fail(is_piece.error());
    pieces += *is_piece ? 1 : 0;
  }
}

Status AnswerScan::finish() {
  auto item = parser_.finish();
  if (!item) return fail(of_server(std::move(item.error())));
  if (*item && (*item)->kind == http::SseItem::Kind::event) {
    const auto taken = take((*item)->data);
    if (!taken) return fail(taken.error());
  }
  // Some servers leave `[DONE]` out, some the stop event; none leaves out why it stopped.
  if (!finish_reason_.empty() || ended_) return {};
  return fail(ErrorCode::engine_failed, Origin::engine,
              "the stream ended without a finish reason, so the answer is cut");
}

Result<bool> AnswerScan::take(std::string_view data) {
  if (data == "[DONE]") {
    ended_ = true;
    return false;
  }
  return dialect_ == Dialect::openai ? take_chunk(data) : take_event(data);
}

Result<bool> AnswerScan::take_chunk(std::string_view data) {
  bool is_piece = false;
  JsonObjectCursor members(data);
  while (const auto member = members.next()) {
    if (member->is("error") && member->kind() != JsonKind::null) return failed_answer(data);
    if (member->is("usage") && member->kind() == JsonKind::object) {
      take_usage(member->value);
      output_told_ = true;
    }
    if (!member->is("choices")) continue;
    JsonArrayCursor choices(member->value);
    while (const auto choice = choices.next()) {
      if (const auto delta = find_member(*choice, "delta"))
        is_piece = holds_piece(*delta) || is_piece;
      const auto reason = find_member(*choice, "finish_reason");
      if (reason && holds_text(*reason)) finish_reason_ = *json_string_raw(*reason);
    }
  }
  return is_piece;
}

Result<bool> AnswerScan::take_event(std::string_view data) {
  const std::string_view type = find_member(data, "type").value_or(std::string_view());
  if (is_string(type, "content_block_delta")) {
    const auto delta = find_member(data, "delta");
    return delta && holds_block_piece(*delta);
  }
  if (is_string(type, "content_block_start")) {
    const auto block = find_member(data, "content_block");
    return block && holds_block_piece(*block);
  }
  if (is_string(type, "error")) return failed_answer(data);
  if (is_string(type, "message_stop")) ended_ = true;
  if (is_string(type, "message_start")) {
    const auto message = find_member(data, "message");
    const auto usage = message ? find_member(*message, "usage") : std::nullopt;
    if (usage) take_usage(*usage);
  }
  if (is_string(type, "message_delta")) {
    const auto delta = find_member(data, "delta");
    const auto reason = delta ? find_member(*delta, "stop_reason") : std::nullopt;
    if (reason && holds_text(*reason)) finish_reason_ = *json_string_raw(*reason);
    if (const auto usage = find_member(data, "usage")) {
      take_usage(*usage);
      output_told_ = true;
    }
  }
  return false;
}

// Later members replace earlier ones: a message tells its usage in two parts.
void AnswerScan::take_usage(std::string_view usage) {
  boost::system::error_code error;
  const json::value told = json::parse(json::string_view(usage.data(), usage.size()), error);
  if (error || !told.is_object()) return;
  if (!usage_) usage_.emplace();
  for (const auto& [name, value] : told.get_object()) usage_->insert_or_assign(name, value);
}

// What a message's beginning says of the output is only its first token.
std::optional<std::uint64_t> AnswerScan::completion_tokens() const {
  if (!usage_ || !output_told_) return std::nullopt;
  const json::value* count =
      usage_->if_contains(dialect_ == Dialect::openai ? "completion_tokens" : "output_tokens");
  if (count == nullptr) return std::nullopt;
  boost::system::error_code error;
  const auto number = count->to_number<std::uint64_t>(error);
  return error ? std::nullopt : std::optional(number);
}

}  // namespace werk::app::bench
