#include "werk/gateway/messages_relay.hpp"

#include <fmt/format.h>

#include <array>

#include "werk/base/json_cursor.hpp"
#include "werk/base/json_splice.hpp"
#include "werk/gateway/engine_error.hpp"
#include "werk/http/sse.hpp"

namespace werk::gateway {
namespace {

tl::unexpected<Error> broken(std::string message) {
  return fail(ErrorCode::engine_failed, Origin::engine, std::move(message));
}

tl::unexpected<Error> bad_member(std::string_view member, std::string message) {
  Error error{ErrorCode::invalid_request, std::move(message), Origin::client};
  error.param = member;
  return fail(std::move(error));
}

std::string word_of(std::string_view object, std::string_view key) {
  return json_string(find_member(object, key).value_or("")).value_or("");
}

// The dialect's words for what is no fault of the server's code, and so for what the client may
// do.
struct ErrorWord {
  std::string_view type;
  ErrorCode code;
};
constexpr std::array<ErrorWord, 5> kErrorWords = {{
    {"invalid_request_error", ErrorCode::invalid_request},
    {"not_found_error", ErrorCode::model_not_found},
    {"rate_limit_error", ErrorCode::queue_full},
    {"overloaded_error", ErrorCode::capacity},
    {"timeout_error", ErrorCode::engine_timeout},
}};

Error error_in(std::string_view error) {
  Error found = engine_error_in_stream(error);
  const std::string type = word_of(error, "type");
  for (const ErrorWord& word : kErrorWords) {
    if (word.type == type) found.code = word.code;
  }
  return found;
}

}  // namespace

Result<MessagesOutline> outline_messages(std::string_view body) {
  JsonScanner scanner(JsonScanLimits{.notes = JsonNotes::nothing});
  Status valid = scanner.feed(body);
  if (valid) valid = scanner.finish();
  if (!valid) return pass_on(valid);
  if (scanner.root() != JsonKind::object)
    return bad_member({}, "the request body is no JSON object");
  MessagesOutline outline;
  bool stream_named = false;
  JsonObjectCursor members(trim_json(body));
  while (const auto member = members.next()) {
    if (member->is("model")) {
      if (outline.model) return bad_member("model", "`model` stands twice in the request");
      outline.model = json_string(member->value);
      if (!outline.model || outline.model->empty())
        return bad_member("model", "`model` must be a string that isn't empty");
    }
    if (member->is("stream")) {
      const bool fits = member->kind() == JsonKind::boolean || member->kind() == JsonKind::null;
      if (stream_named || !fits)
        return bad_member("stream", "`stream` must be true or false, and stand once");
      stream_named = true;
      outline.stream = json_is_true(member->value);
    }
  }
  return outline;
}

std::string with_model(std::string_view body, std::string_view model) {
  JsonSplice splice(body);
  JsonObjectEditor editor(splice, trim_json(body));
  editor.set("model", to_json_string(model));
  editor.commit();
  return splice.apply();
}

MessagesRelay::MessagesRelay(Form form, std::string client_model)
    : form_(form),
      model_json_(to_json_string(client_model)),
      scanner_(JsonScanLimits{.notes = JsonNotes::nothing}) {}

// What every answer must be, and no error.
Status MessagesRelay::check(std::string_view name, std::string_view text) {
  scanner_.reset();
  Status valid = scanner_.feed(text);
  if (valid) valid = scanner_.finish();
  if (!valid) {
    if (name == "error") return fail(engine_error_from(500, text));
    return broken(
        fmt::format("the engine sent something that is not JSON ({})", valid.error().message));
  }
  const auto error = find_member(text, "error");
  const bool is_error =
      name == "error" || word_of(text, "type") == "error" || (error && *error != "null");
  if (is_error) return fail(error_in(error.value_or(text)));
  if (scanner_.root() != JsonKind::object)
    return broken(
        fmt::format("the engine sent {} where a message was expected", name_of(scanner_.root())));
  return {};
}

Status MessagesRelay::event(std::string_view name, std::string_view data, std::string& out) {
  if (done_) return {};
  const std::string_view text = trim_json(data);
  // Servers that make this dialect from OpenAI's leave its end behind.
  if (text.empty() || text == "[DONE]") return {};
  Status fits = check(name, text);
  if (!fits) return fits;
  const std::string type = word_of(text, "type");
  if (type.empty()) return broken("the engine sent an event without a type");
  if (type == "message_start") {
    const std::string_view message = find_member(text, "message").value_or("");
    note_usage(find_member(message, "usage").value_or(""));
    const std::optional<std::uint64_t> cached = usage_.cached_tokens;
    facts_.started = PromptFacts{usage_.prompt_tokens, cached.value_or(0)};
    http::append_sse_event(out, type, relabelled(text, message));
    return {};
  }
  if (type == "content_block_delta") ++facts_.content_events;
  if (type == "message_delta") {
    note_usage(find_member(text, "usage").value_or(""));
    facts_.usage = usage_;
  }
  done_ = type == "message_stop";
  http::append_sse_event(out, type, text);
  return {};
}

Status MessagesRelay::finish() const {
  if (done_) return {};
  return broken(facts_.content_events == 0
                    ? "the engine's stream ended before the answer began"
                    : "the engine's stream ended in the middle of the answer");
}

Result<std::string> MessagesRelay::whole(std::string_view body) {
  const std::string_view text = trim_json(body);
  Status fits = check({}, text);
  if (!fits) return pass_on(fits);
  if (word_of(text, "type") != "message") return broken("the engine's answer is no message");
  note_usage(find_member(text, "usage").value_or(""));
  facts_.usage = usage_;
  return relabelled(text, text);
}

std::string MessagesRelay::relabelled(std::string_view text, std::string_view message) {
  JsonSplice splice(text);
  if (json_kind(message) == JsonKind::object) {
    JsonObjectEditor editor(splice, message);
    editor.set("model", model_json_);
    editor.commit();
  }
  return splice.apply();
}

// Later reports are of the whole answer so far, and may leave out what hasn't changed.
void MessagesRelay::note_usage(std::string_view usage) {
  JsonObjectCursor members(usage);
  while (const auto member = members.next()) {
    const auto number = json_unsigned(member->value);
    if (!number) continue;
    if (member->is("input_tokens")) input_tokens_ = *number;
    if (member->is("cache_read_input_tokens")) usage_.cached_tokens = *number;
    if (member->is("cache_creation_input_tokens")) written_tokens_ = *number;
    if (member->is("output_tokens")) usage_.completion_tokens = *number;
  }
  const std::optional<std::uint64_t> cached = usage_.cached_tokens;
  usage_.prompt_tokens = input_tokens_ + cached.value_or(0) + written_tokens_;
}

}  // namespace werk::gateway
