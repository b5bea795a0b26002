#include "werk/gateway/chunk_events.hpp"

#include "werk/base/json_cursor.hpp"

namespace werk::gateway {
namespace {

// Whether the text ends with the escape of a high surrogate ("\ud83d"), whose pair may follow.
bool ends_in_pair(std::string_view text) {
  constexpr std::size_t kEscape = 6;
  if (text.size() < kEscape) return false;
  const std::string_view tail = text.substr(text.size() - kEscape);
  if (!tail.starts_with("\\u") || (tail[2] != 'd' && tail[2] != 'D')) return false;
  if (std::string_view("89abAB").find(tail[3]) == std::string_view::npos) return false;
  const std::string_view before = text.substr(0, text.size() - kEscape);
  const std::size_t slashes = before.size() - (before.find_last_not_of('\\') + 1);
  return slashes % 2 == 0;
}

chat::FinishReason reason_of(std::string_view word) {
  if (word == "length") return chat::FinishReason::length;
  if (word == "tool_calls" || word == "function_call") return chat::FinishReason::tool_calls;
  if (word == "content_filter") return chat::FinishReason::content_filter;
  return chat::FinishReason::stop;
}

}  // namespace

std::string EscapedText::take(std::string_view between_quotes) {
  if (held_.empty() && !ends_in_pair(between_quotes)) return unescape_json(between_quotes);
  std::string text = std::exchange(held_, {}).append(between_quotes);
  if (ends_in_pair(text)) {
    constexpr std::size_t kEscape = 6;
    held_ = text.substr(text.size() - kEscape);
    text.resize(text.size() - kEscape);
  }
  return unescape_json(text);
}

std::string EscapedText::rest() { return unescape_json(std::exchange(held_, {})); }

Status ChunkEvents::chunk(std::span<const std::string_view> pieces) {
  text_.clear();
  for (const std::string_view piece : pieces) text_ += piece;
  if (Status status = advance(); !status) return status;
  std::string_view choices;
  JsonObjectCursor members(text_);
  while (const auto member = members.next()) {
    if (member->is("choices")) choices = member->value;
    if (member->is("__verbose"))
      take_stop(find_member(member->value, "stopping_word").value_or(""));
  }
  return take_choices(choices);
}

Status ChunkEvents::similar(std::span<const std::string_view>, std::string_view choices) {
  if (Status status = advance(); !status) return status;
  return take_choices(choices);
}

Status ChunkEvents::take_choices(std::string_view choices) {
  JsonArrayCursor each(choices);
  while (const auto choice = each.next()) {
    if (Status status = take_choice(*choice); !status) return status;
  }
  return {};
}

Status ChunkEvents::advance() { return facts_.started ? start() : Status(); }

Status ChunkEvents::start() {
  if (std::exchange(started_, true)) return {};
  chat::Started started = options_.counted;
  if (facts_.started)
    started = chat::Started{facts_.started->prompt_tokens, facts_.started->cached_tokens};
  return sink_.event(started);
}

void ChunkEvents::take_stop(std::string_view word) {
  auto text = json_string(word);
  if (text && !text->empty()) stop_sequence_ = std::move(*text);
}

Status ChunkEvents::take_choice(std::string_view choice) {
  std::string_view delta;
  std::uint64_t index = 0;
  std::string_view stop_reason;
  JsonObjectCursor members(choice);
  while (const auto member = members.next()) {
    if (member->is("index")) index = json_unsigned(member->value).value_or(0);
    if (member->is("delta")) delta = member->value;
    if (member->is("stop_reason")) stop_reason = member->value;  // vLLM's: a string or a token
  }
  if (index != 0) return {};
  take_stop(stop_reason);
  return take_delta(delta);
}

Status ChunkEvents::take_delta(std::string_view delta) {
  std::string text;
  std::string reasoning;
  std::string_view calls;
  JsonObjectCursor members(delta);
  while (const auto member = members.next()) {
    if (member->is("reasoning_content"))
      reasoning += reasoning_.take(json_string_raw(member->value).value_or(""));
    if (member->is("content") || member->is("refusal"))
      text += content_.take(json_string_raw(member->value).value_or(""));
    if (member->is("tool_calls")) calls = member->value;
  }
  if (!reasoning.empty()) {
    if (Status status = start(); !status) return status;
    if (Status status = sink_.event(chat::ReasoningDelta{std::move(reasoning)}); !status)
      return status;
  }
  if (!text.empty()) {
    if (Status status = start(); !status) return status;
    if (Status status = sink_.event(chat::TextDelta{std::move(text)}); !status) return status;
  }
  JsonArrayCursor each(calls);
  while (const auto element = each.next()) {
    if (json_kind(*element) != JsonKind::object) continue;
    if (Status status = take_call(*element); !status) return status;
  }
  return {};
}

Status ChunkEvents::take_call(std::string_view element) {
  chat::ToolCallDelta delta;
  std::string_view function;
  JsonObjectCursor members(element);
  while (const auto member = members.next()) {
    if (member->is("index")) {
      delta.index = static_cast<std::uint32_t>(json_unsigned(member->value).value_or(0));
    } else if (member->is("id")) {
      delta.id = json_string(member->value).value_or("");
    } else if (member->is("function")) {
      function = member->value;
    }
  }
  delta.name = json_string(find_member(function, "name").value_or("")).value_or("");
  const auto arguments = json_string_raw(find_member(function, "arguments").value_or(""));
  if (arguments) delta.arguments = arguments_[delta.index].take(*arguments);
  if (Status status = start(); !status) return status;
  return sink_.event(delta);
}

Status ChunkEvents::finish() {
  if (Status status = start(); !status) return status;
  if (std::string rest = reasoning_.rest(); !rest.empty()) {
    if (Status status = sink_.event(chat::ReasoningDelta{std::move(rest)}); !status) return status;
  }
  if (std::string rest = content_.rest(); !rest.empty()) {
    if (Status status = sink_.event(chat::TextDelta{std::move(rest)}); !status) return status;
  }
  for (auto& [index, arguments] : arguments_) {
    std::string rest = arguments.rest();
    if (rest.empty()) continue;
    Status status = sink_.event(chat::ToolCallDelta{index, {}, {}, std::move(rest)});
    if (!status) return status;
  }
  chat::Finished finished;
  if (!facts_.finish_reasons.empty()) finished.reason = reason_of(facts_.finish_reasons.front());
  finished.stop_sequence = std::move(stop_sequence_);
  if (facts_.usage) {
    finished.usage =
        chat::Usage{facts_.usage->prompt_tokens, facts_.usage->cached_tokens.value_or(0),
                    facts_.usage->completion_tokens};
    const std::uint64_t filled = facts_.usage->prompt_tokens + facts_.usage->completion_tokens;
    const bool full = options_.context_tokens && filled >= *options_.context_tokens;
    if (full && finished.reason == chat::FinishReason::length)
      finished.reason = chat::FinishReason::context;
  }
  return sink_.event(finished);
}

}  // namespace werk::gateway
