#include "werk/gateway/openai_fold.hpp"

#include <fmt/format.h>

#include "werk/base/json_cursor.hpp"

namespace werk::gateway {
namespace {

constexpr std::size_t kChoicesMax = 128;

// Appends what stands between a string's quotes; anything else adds nothing.
void append_raw(std::string& out, std::string_view value) {
  out += json_string_raw(value).value_or("");
}

void append_elements(std::string& out, std::string_view array) {
  if (json_kind(array) != JsonKind::array || array.size() < 2) return;
  const std::string_view elements = trim_json(array.substr(1, array.size() - 2));
  if (elements.empty()) return;
  if (!out.empty()) out.push_back(',');
  out += elements;
}

void append_member(std::string& out, std::string_view name, std::string_view json) {
  if (json.empty()) return;
  if (out.back() != '{') out.push_back(',');
  out.push_back('"');
  out += name;
  out += "\":";
  out += json;
}

void keep_first(std::string& kept, std::string_view value) {
  if (kept.empty() && value != "null") kept = value;
}

std::string quoted(std::string_view raw) { return fmt::format("\"{}\"", raw); }

}  // namespace

Status ChatFold::chunk(std::span<const std::string_view> pieces) {
  text_.clear();
  for (const std::string_view piece : pieces) text_ += piece;
  std::string_view choices;
  JsonObjectCursor members(text_);
  while (const auto member = members.next()) {
    if (member->is("choices")) choices = member->value;
    if (member->is("id")) keep_first(id_, member->value);
    if (member->is("created")) keep_first(created_, member->value);
    if (member->is("system_fingerprint")) keep_first(system_fingerprint_, member->value);
    if (member->is("usage") && member->value != "null") usage_ = member->value;
    if (member->is("timings") && member->value != "null") timings_ = member->value;
  }
  return take_choices(choices);
}

Status ChatFold::similar(std::span<const std::string_view>, std::string_view choices) {
  return take_choices(choices);
}

Status ChatFold::take_choices(std::string_view choices) {
  JsonArrayCursor each(choices);
  while (const auto choice = each.next()) {
    if (Status status = take_choice(*choice); !status) return status;
  }
  return {};
}

Status ChatFold::take_choice(std::string_view text) {
  std::string_view delta;
  std::string_view logprobs;
  std::string_view reason;
  std::uint64_t index = 0;
  JsonObjectCursor members(text);
  while (const auto member = members.next()) {
    if (member->is("index")) index = json_unsigned(member->value).value_or(0);
    if (member->is("delta")) delta = member->value;
    if (member->is("logprobs")) logprobs = member->value;
    if (member->is("finish_reason")) reason = member->value;
  }
  if (index >= kChoicesMax) {
    return fail(ErrorCode::engine_failed, Origin::engine,
                fmt::format("the engine sent a choice of index {}", index));
  }
  if (index >= choices_.size()) choices_.resize(index + 1);
  Choice& choice = choices_[index];
  // What is kept is never more than what came, so the choice's text bounds it.
  kept_ += delta.size() + logprobs.size();
  if (kept_ > options_.bytes_max) {
    return fail(ErrorCode::engine_failed, Origin::engine,
                fmt::format("the engine's answer is longer than {} bytes", options_.bytes_max));
  }
  take_logprobs(choice, logprobs);
  if (json_kind(reason) == JsonKind::string) choice.finish_reason = reason;
  return take_delta(choice, delta);
}

Status ChatFold::take_delta(Choice& choice, std::string_view delta) {
  JsonObjectCursor members(delta);
  while (const auto member = members.next()) {
    if (member->is("content")) append_raw(choice.content, member->value);
    if (member->is("reasoning_content")) append_raw(choice.reasoning, member->value);
    if (member->is("refusal")) append_raw(choice.refusal, member->value);
    if (!member->is("tool_calls")) continue;
    if (Status status = take_calls(choice, member->value); !status) return status;
  }
  return {};
}

Status ChatFold::take_calls(Choice& choice, std::string_view tool_calls) {
  JsonArrayCursor each(tool_calls);
  while (const auto element = each.next()) {
    const std::uint64_t index =
        json_unsigned(find_member(*element, "index").value_or("")).value_or(0);
    if (index >= kToolCallsMax) {
      return fail(ErrorCode::engine_failed, Origin::engine,
                  fmt::format("the engine's answer holds more than {} tool calls", kToolCallsMax));
    }
    if (index >= choice.calls.size()) choice.calls.resize(index + 1);
    Call& call = choice.calls[index];
    const auto function = find_member(*element, "function").value_or("");
    if (call.id.empty()) append_raw(call.id, find_member(*element, "id").value_or(""));
    if (call.type.empty()) append_raw(call.type, find_member(*element, "type").value_or(""));
    if (call.name.empty()) append_raw(call.name, find_member(function, "name").value_or(""));
    append_raw(call.arguments, find_member(function, "arguments").value_or(""));
  }
  return {};
}

void ChatFold::take_logprobs(Choice& choice, std::string_view logprobs) {
  JsonObjectCursor members(logprobs);
  while (const auto member = members.next()) {
    if (member->is("content")) append_elements(choice.logprobs, member->value);
    if (member->is("refusal")) append_elements(choice.refusal_logprobs, member->value);
  }
}

void ChatFold::append_message(std::string& out, const Choice& choice) {
  out += R"({"role":"assistant")";
  append_member(out, "content", quoted(choice.content));
  if (!choice.reasoning.empty()) append_member(out, "reasoning_content", quoted(choice.reasoning));
  if (!choice.refusal.empty()) append_member(out, "refusal", quoted(choice.refusal));
  if (!choice.calls.empty()) {
    out += R"(,"tool_calls":[)";
    for (const Call& call : choice.calls) {
      if (&call != &choice.calls.front()) out.push_back(',');
      out += fmt::format(R"({{"type":"{}","function":{{"name":"{}","arguments":"{}"}},"id":"{}"}})",
                         call.type.empty() ? "function" : call.type, call.name, call.arguments,
                         call.id);
    }
    out.push_back(']');
  }
  out.push_back('}');
}

void ChatFold::append_choice(std::string& out, const Choice& choice, std::size_t index) {
  out.push_back('{');
  append_member(out, "finish_reason", choice.finish_reason.empty() ? "null" : choice.finish_reason);
  append_member(out, "index", fmt::to_string(index));
  out += R"(,"message":)";
  append_message(out, choice);
  if (!choice.logprobs.empty() || !choice.refusal_logprobs.empty()) {
    out += R"(,"logprobs":{)";
    append_member(out, "content", fmt::format("[{}]", choice.logprobs));
    if (!choice.refusal_logprobs.empty())
      append_member(out, "refusal", fmt::format("[{}]", choice.refusal_logprobs));
    out.push_back('}');
  }
  out.push_back('}');
}

std::string ChatFold::finish() const {
  std::string out = R"({"choices":[)";
  out.reserve(kept_ + 1024);
  for (std::size_t i = 0; i < choices_.size(); ++i) {
    if (i > 0) out.push_back(',');
    append_choice(out, choices_[i], i);
  }
  out.push_back(']');
  append_member(out, "created",
                created_.empty() ? fmt::to_string(options_.default_created) : created_);
  append_member(out, "model", to_json_string(options_.client_model));
  append_member(out, "system_fingerprint", system_fingerprint_);
  append_member(out, "object", R"("chat.completion")");
  append_member(out, "usage", usage_);
  append_member(out, "id", id_.empty() ? to_json_string(options_.default_id) : id_);
  append_member(out, "timings", timings_);
  out.push_back('}');
  return out;
}

}  // namespace werk::gateway
