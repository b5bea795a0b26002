#include "werk/gateway/openai_stream.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <numeric>

#include "werk/base/json_cursor.hpp"
#include "werk/base/json_splice.hpp"
#include "werk/gateway/engine_error.hpp"

namespace werk::gateway {
namespace {

constexpr std::uint32_t kChoicesMax = 128;
constexpr std::string_view kRoleDelta = R"({"role":"assistant"})";

tl::unexpected<Error> broken(std::string message) {
  return fail(ErrorCode::engine_failed, Origin::engine, std::move(message));
}

bool is_text(std::string_view value) { return value.size() > 2 && value.front() == '"'; }

// Two searches for one byte each are far cheaper than one for either.
bool is_one_line(std::string_view text) {
  return text.find('\n') == std::string_view::npos && text.find('\r') == std::string_view::npos;
}

// Content given as a list of parts, as one string.
std::string join_parts(std::string_view parts) {
  std::string joined = "\"";
  JsonArrayCursor each(parts);
  while (const auto part = each.next()) {
    joined += json_string_raw(find_member(*part, "text").value_or("")).value_or("");
  }
  joined.push_back('"');
  return joined;
}

// The reason as OpenAI names it, given what was really sent.
std::string canonical_reason(std::string_view reason, Wanted has_calls) {
  if (reason == "length" || reason == "content_filter" || reason == "function_call")
    return std::string(reason);
  if (reason == "max_tokens") return "length";
  const bool stops = reason == "stop" || reason == "tool_calls" || reason == "tool_use" ||
                     reason == "eos" || reason == "eos_token" || reason == "end_turn" ||
                     reason == "stop_sequence";
  if (!stops) return std::string(reason);
  return has_calls == Wanted::yes ? "tool_calls" : "stop";
}

}  // namespace

Status ChunkWriter::chunk(std::span<const std::string_view> pieces) {
  out_ += "data: ";
  for (const std::string_view piece : pieces) out_ += piece;
  out_ += "\n\n";
  return {};
}

// The members of a chunk that matter; empty views where absent.
struct ChatStreamFilter::Chunk {
  std::string_view text;
  std::string_view model;
  std::string_view choices;
  std::string_view usage;
  std::string_view error;
  std::string_view progress;
  bool has_message = false;
  std::uint32_t choice = 0;  // the last one named in it
};

ChatStreamFilter::ChatStreamFilter(ChatStreamOptions options)
    : options_(std::move(options)),
      model_json_(to_json_string(options_.client_model)),
      scanner_(JsonScanLimits{.notes = JsonNotes::nothing}),
      calls_(options_.call_id_seed) {
  facts_.finish_reasons.resize(options_.choices);
  choices_.resize(options_.choices);
}

Status ChatStreamFilter::event(std::string_view name, std::string_view data, ChunkSink& sink) {
  if (done_) return {};
  const std::string_view text = trim_json(data);
  if (text.empty()) return {};
  if (text == "[DONE]") {
    done_ = true;
    return {};
  }
  if (name != "error") {
    const std::string_view choices = choices_in_frame(text);
    if (!choices.empty()) return framed(choices, sink);
  }
  const Status valid = check(text);
  if (!valid) {
    if (name == "error") return fail(engine_error_from(500, text));
    return broken(
        fmt::format("the engine sent an event that is not JSON ({})", valid.error().message));
  }
  if (name == "error")
    return fail(engine_error_in_stream(find_member(text, "error").value_or(text)));
  if (scanner_.root() != JsonKind::object) {
    return broken(
        fmt::format("the engine sent {} where a chunk was expected", name_of(scanner_.root())));
  }
  if (is_one_line(text)) return chunk(text, sink);
  // Blanks between tokens; a line feed would break the client's framing.
  std::string one_line(text);
  std::ranges::replace(one_line, '\n', ' ');
  std::ranges::replace(one_line, '\r', ' ');
  return chunk(one_line, sink);
}

Status ChatStreamFilter::check(std::string_view text) {
  scanner_.reset();
  Status valid = scanner_.feed(text);
  return valid ? scanner_.finish() : valid;
}

// The choices of a chunk that fits the frame; empty if it doesn't, and has to be read whole.
std::string_view ChatStreamFilter::choices_in_frame(std::string_view text) {
  if (!frame_ || text.size() <= frame_->before.size() + frame_->behind.size()) return {};
  if (!text.starts_with(frame_->before) || !text.ends_with(frame_->behind)) return {};
  text.remove_prefix(frame_->before.size());
  text.remove_suffix(frame_->behind.size());
  const bool fits = is_one_line(text) && check(text) && scanner_.root() == JsonKind::array;
  return fits ? text : std::string_view();
}

Status ChatStreamFilter::framed(std::string_view list, ChunkSink& sink) {
  Chunk chunk;
  JsonSplice splice(list);
  const Result<bool> any = choices(splice, list, chunk);
  if (!any) return fail(any.error());
  if (!*any) return {};
  std::string edited;
  if (!splice.empty()) {
    edited = splice.apply();
    list = edited;
  }
  const std::array<std::string_view, 3> pieces = {frame_->before_sent, list, frame_->behind_sent};
  return sink.similar(pieces, list);
}

void ChatStreamFilter::learn_frame(const Chunk& chunk) {
  const ByteRange choices = range_in(chunk.text, chunk.choices);
  const ByteRange model = range_in(chunk.text, chunk.model);
  Frame frame;
  frame.before = chunk.text.substr(0, choices.begin);
  frame.behind = chunk.text.substr(choices.end);
  frame.before_sent = frame.before;
  frame.behind_sent = frame.behind;
  if (model.begin < choices.begin) {
    frame.before_sent.replace(model.begin, model.size(), model_json_);
  } else {
    frame.behind_sent.replace(model.begin - choices.end, model.size(), model_json_);
  }
  frame_ = std::move(frame);
}

Status ChatStreamFilter::chunk(std::string_view text, ChunkSink& sink) {
  Chunk chunk;
  chunk.text = text;
  JsonObjectCursor members(text);
  bool usage_named = false;
  while (const auto member = members.next()) {
    const bool null = member->kind() == JsonKind::null;
    if (member->is("model")) chunk.model = member->value;
    if (member->is("usage")) usage_named = true;
    if (null) continue;
    if (member->is("choices")) chunk.choices = member->value;
    if (member->is("usage")) chunk.usage = member->value;
    if (member->is("error")) chunk.error = member->value;
    if (member->is("prompt_progress")) chunk.progress = member->value;
    if (member->is("message")) chunk.has_message = true;
  }
  if (!chunk.error.empty()) return fail(engine_error_in_stream(chunk.error));
  if (chunk.choices.empty() && chunk.has_message) return fail(engine_error_in_stream(text));
  if (!chunk.progress.empty()) {
    note_progress(chunk.progress);
    if (options_.progress == Wanted::no) return {};
  }
  JsonSplice splice(text);
  const Result<bool> any = choices(splice, chunk.choices, chunk);
  if (!any) return fail(any.error());
  if (!chunk.usage.empty()) hold_usage(*any ? Place::beside_choices : Place::alone, chunk);
  if (!*any) return {};
  const bool drop_usage = usage_named && (!chunk.usage.empty() || options_.usage == Wanted::no);
  const bool plain = !drop_usage && !chunk.model.empty() && chunk.progress.empty();
  if (plain) learn_frame(chunk);
  if (plain && splice.empty()) {
    const std::array<std::string_view, 3> pieces = {frame_->before_sent, chunk.choices,
                                                    frame_->behind_sent};
    return sink.chunk(pieces);
  }
  JsonObjectEditor editor(splice, text);
  editor.set("model", model_json_);
  if (drop_usage) editor.remove("usage");
  editor.commit();
  const std::string edited = splice.apply();
  const std::array<std::string_view, 1> pieces = {edited};
  return sink.chunk(pieces);
}

Result<bool> ChatStreamFilter::choices(JsonSplice& splice, std::string_view list, Chunk& chunk) {
  bool any = false;
  JsonArrayCursor each(list);
  while (const auto text = each.next()) {
    any = true;
    if (Status status = choice(splice, *text, chunk); !status) return pass_on(status);
  }
  return any;
}

Status ChatStreamFilter::choice(JsonSplice& splice, std::string_view text, Chunk& chunk) {
  if (json_kind(text) != JsonKind::object)
    return broken("the engine sent a choice that is no object");
  std::string_view delta_text;
  std::string_view reason;
  std::uint64_t index = 0;
  JsonObjectCursor members(text);
  while (const auto member = members.next()) {
    if (member->is("index")) index = json_unsigned(member->value).value_or(0);
    if (member->is("delta")) delta_text = member->value;
    if (member->is("finish_reason")) reason = member->value;
  }
  if (index >= kChoicesMax)
    return broken(fmt::format("the engine sent a choice of index {}", index));
  chunk.choice = static_cast<std::uint32_t>(index);
  if (index >= choices_.size()) choices_.resize(index + 1);
  if (index >= facts_.finish_reasons.size()) facts_.finish_reasons.resize(index + 1);
  if (json_kind(delta_text) == JsonKind::object) {
    if (Status status = delta(splice, delta_text, chunk.choice); !status) return status;
  } else {
    JsonObjectEditor editor(splice, text);
    editor.set("delta", std::string(choices_[index].role_sent ? "{}" : kRoleDelta));
    editor.commit();
    choices_[index].role_sent = true;
  }
  return finish_reason(splice, reason, chunk.choice);
}

Status ChatStreamFilter::delta(JsonSplice& splice, std::string_view text, std::uint32_t index) {
  Choice& choice = choices_[index];
  std::string_view role;
  std::string_view content;
  std::string_view reasoning;
  std::string_view reasoning_content;
  std::string_view tool_calls;
  bool counts = false;
  JsonObjectCursor members(text);
  while (const auto member = members.next()) {
    if (member->is("content")) content = member->value;
    if (member->is("role")) role = member->value;
    if (member->is("reasoning_content")) reasoning_content = member->value;
    if (member->is("reasoning")) reasoning = member->value;
    if (member->is("tool_calls")) tool_calls = member->value;
    if (member->is("refusal")) counts = counts || is_text(member->value);
  }
  const bool lists_content = json_kind(content) == JsonKind::array && !content.empty();
  counts = counts || is_text(content) || lists_content || is_text(reasoning) ||
           is_text(reasoning_content);
  if (json_kind(tool_calls) == JsonKind::array) {
    const auto any = calls_.take(splice, tool_calls, index);
    if (!any) return fail(any.error());
    if (*any) counts = choice.has_calls = true;
    facts_.tool_calls = calls_.count();
  }
  if (counts) ++facts_.content_events;
  const bool needs_role = !choice.role_sent && !is_text(role);
  choice.role_sent = true;
  if (!needs_role && !lists_content && reasoning.empty()) return {};
  JsonObjectEditor editor(splice, text);
  if (needs_role) editor.set("role", "\"assistant\"");
  if (lists_content) editor.set("content", join_parts(content));
  if (reasoning == "null" || is_text(reasoning_content)) {
    editor.remove("reasoning");
  } else if (json_kind(reasoning) == JsonKind::string) {
    editor.remove("reasoning_content");
    editor.rename("reasoning", "reasoning_content");
  }
  editor.commit();
  return {};
}

Status ChatStreamFilter::finish_reason(JsonSplice& splice, std::string_view text,
                                       std::uint32_t index) {
  const auto reason = json_string(text);
  if (!reason) return {};
  const ByteRange range = range_in(splice.text(), text);
  if (reason->empty()) {
    splice.replace(range, "null");
    return {};
  }
  if (*reason == "error" || *reason == "abort") {
    return broken(fmt::format("the engine ended the answer with the reason '{}'", *reason));
  }
  std::string canonical =
      canonical_reason(*reason, choices_[index].has_calls ? Wanted::yes : Wanted::no);
  if (canonical != *reason) splice.replace(range, to_json_string(canonical));
  facts_.finish_reasons[index] = std::move(canonical);
  last_finished_ = index;
  return {};
}

// The first report tells what the prompt costs; later ones only how far it is.
void ChatStreamFilter::note_progress(std::string_view progress) {
  if (facts_.started) return;
  facts_.started =
      PromptFacts{json_unsigned(find_member(progress, "total").value_or("")).value_or(0),
                  json_unsigned(find_member(progress, "cache").value_or("")).value_or(0)};
}

// Engines send usage once at the end, once per choice (llama-server), or beside the text. The
// client gets one chunk of it, last: that of choice 0 where each choice has its own, as
// llama-server's whole answers do.
void ChatStreamFilter::hold_usage(Place place, const Chunk& chunk) {
  const std::uint32_t of = place == Place::beside_choices ? chunk.choice : last_finished_;
  if (of >= completion_tokens_.size()) completion_tokens_.resize(of + 1);
  completion_tokens_[of] = 0;
  UsageFacts usage;
  JsonObjectCursor members(chunk.usage);
  while (const auto member = members.next()) {
    if (member->is("completion_tokens"))
      completion_tokens_[of] = json_unsigned(member->value).value_or(0);
    if (member->is("prompt_tokens"))
      usage.prompt_tokens = json_unsigned(member->value).value_or(0);
    if (member->is("prompt_tokens_details"))
      usage.cached_tokens = json_unsigned(find_member(member->value, "cached_tokens").value_or(""));
  }
  usage.completion_tokens =
      std::accumulate(completion_tokens_.begin(), completion_tokens_.end(), std::uint64_t{0});
  facts_.usage = usage;
  const int rank = place == Place::beside_choices ? 1 : of > 0 ? 2 : 3;
  if (options_.usage == Wanted::no || rank < usage_rank_) return;
  usage_rank_ = rank;
  JsonSplice splice(chunk.text);
  JsonObjectEditor editor(splice, chunk.text);
  editor.set("model", model_json_);
  editor.set("choices", "[]");
  editor.commit();
  usage_chunk_ = splice.apply();
}

Status ChatStreamFilter::finish(ChunkSink& sink) {
  done_ = true;
  for (std::uint32_t i = 0; i < options_.choices; ++i) {
    if (!facts_.finish_reasons[i].empty()) continue;
    return broken(facts_.content_events == 0
                      ? "the engine's stream ended before the answer began"
                      : "the engine's stream ended in the middle of the answer");
  }
  if (usage_chunk_.empty()) return {};
  const std::array<std::string_view, 1> pieces = {usage_chunk_};
  return sink.chunk(pieces);
}

}  // namespace werk::gateway
