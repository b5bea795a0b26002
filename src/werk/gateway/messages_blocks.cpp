#include "werk/gateway/messages_blocks.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "werk/gateway/tool_call_ledger.hpp"

namespace werk::gateway {
namespace {

tl::unexpected<Error> broken(std::string message) {
  return fail(ErrorCode::engine_failed, Origin::engine, std::move(message));
}

bool is_blank(std::string_view text) {
  return text.find_first_not_of(" \t\r\n") == std::string_view::npos;
}

MessageUsage usage_of(std::uint64_t prompt, std::uint64_t cached, std::uint64_t output) {
  const std::uint64_t read = std::min(prompt, cached);
  return MessageUsage{prompt - read, read, output};
}

}  // namespace

std::string_view name_of(StopReason reason) {
  switch (reason) {
    case StopReason::end_turn: return "end_turn";
    case StopReason::max_tokens: return "max_tokens";
    case StopReason::stop_sequence: return "stop_sequence";
    case StopReason::tool_use: return "tool_use";
    case StopReason::refusal: return "refusal";
    case StopReason::model_context_window_exceeded: return "model_context_window_exceeded";
  }
  return "end_turn";
}

Status MessageBlocks::event(const chat::GenerationEvent& event) {
  if (over()) return {};
  Status status = std::visit([&](const auto& each) { return take(each); }, event);
  if (!status) state_ = State::over;
  return status;
}

Status MessageBlocks::take(const chat::Started& started) {
  start(started);
  return {};
}

// The first one counts; engines repeat it.
void MessageBlocks::start(const chat::Started& started) {
  if (state_ != State::waiting) return;
  state_ = State::running;
  started_ = started;
  sink_.start(usage_of(started.prompt_tokens, started.cached_tokens, 0));
}

Status MessageBlocks::take(const chat::TextDelta& delta) {
  std::string text;
  text_joiner_.take(delta.text, text);
  return add(BlockKind::text, std::move(text));
}

Status MessageBlocks::take(const chat::ReasoningDelta& delta) {
  std::string text;
  thinking_joiner_.take(delta.text, text);
  return add(BlockKind::thinking, std::move(text));
}

Status MessageBlocks::add(BlockKind kind, std::string text) {
  start({});
  if (text.empty()) return {};
  if (kind == BlockKind::thinking && options_.thinking == ThinkingBlocks::leave_out) return {};
  if (open_ == kind && held_.empty()) {
    sink_.delta(text);
    return {};
  }
  if (Status status = hold(kind, 0, std::move(text)); !status) return status;
  return advance(Ending::no);
}

Result<std::size_t> MessageBlocks::find_call(std::uint32_t index) {
  const auto found =
      std::ranges::find_if(calls_, [&](const Call& call) { return call.index == index; });
  if (found != calls_.end()) return static_cast<std::size_t>(found - calls_.begin());
  if (calls_.size() >= kToolCallsMax) {
    return broken(fmt::format("the engine's answer holds more than {} tool calls", kToolCallsMax));
  }
  Call& call = calls_.emplace_back();
  call.index = index;
  call.arguments = JsonScanner(JsonScanLimits{.notes = JsonNotes::nothing});
  const std::size_t number = calls_.size() - 1;
  if (Status status = hold(BlockKind::tool_use, number, {}); !status) return pass_on(status);
  return number;
}

Status MessageBlocks::take(const chat::ToolCallDelta& delta) {
  start({});
  const auto number = find_call(delta.index);
  if (!number) return fail(number.error());
  Call& call = calls_[*number];
  if (call.id.empty()) call.id = delta.id;
  if (call.name.empty()) call.name = delta.name;
  std::string text;
  call.joiner.take(delta.arguments, text);
  if (Status status = add_arguments(*number, std::move(text)); !status) return status;
  return advance(Ending::no);
}

Status MessageBlocks::add_arguments(std::size_t number, std::string text) {
  if (text.empty()) return {};
  Call& call = calls_[number];
  call.has_arguments = call.has_arguments || !is_blank(text);
  const bool closed = call.opened && (open_ != BlockKind::tool_use || open_call_ != number);
  if (closed) {
    if (is_blank(text)) return {};
    return broken("the engine sent more arguments for a tool call whose arguments were whole");
  }
  (void)call.arguments.feed(text);  // what is wrong with them is judged at the end
  if (call.opened) {
    sink_.delta(text);
    return {};
  }
  return hold(BlockKind::tool_use, number, std::move(text));
}

// Joins what belongs to one block; the order is that in which blocks first appeared.
Status MessageBlocks::hold(BlockKind kind, std::size_t call, std::string text) {
  held_bytes_ += text.size();
  if (held_bytes_ > options_.held_bytes_max) {
    return broken(
        fmt::format("the engine mixes its tool calls so that more than {} bytes must be "
                    "held back",
                    options_.held_bytes_max));
  }
  auto known = held_.end();
  if (kind == BlockKind::tool_use) {
    known = std::ranges::find_if(
        held_, [&](const Held& held) { return held.kind == kind && held.call == call; });
  } else if (!held_.empty() && held_.back().kind == kind) {
    known = held_.end() - 1;
  }
  if (known == held_.end()) {
    held_.push_back(Held{kind, call, std::move(text)});
  } else {
    known->text += text;
  }
  return {};
}

// Sends what is held as far as it can go: a call under way keeps its block open until its arguments
// are whole, and a call can't begin before it has a name.
Status MessageBlocks::advance(Ending ending) {
  while (!held_.empty()) {
    const Held& next = held_.front();
    if (ending == Ending::no) {
      const bool under_way =
          open_ == BlockKind::tool_use && !calls_[open_call_].arguments.complete();
      const bool nameless = next.kind == BlockKind::tool_use && calls_[next.call].name.empty();
      if (under_way || nameless) return {};
    }
    open(next);
    if (!next.text.empty()) sink_.delta(next.text);
    held_bytes_ -= next.text.size();
    held_.pop_front();
  }
  return {};
}

void MessageBlocks::open(const Held& held) {
  close();
  BlockHead head{held.kind, {}, {}};
  if (held.kind == BlockKind::tool_use) {
    Call& call = calls_[held.call];
    call.opened = true;
    open_call_ = held.call;
    head.id = public_id(call, held.call);
    head.name = call.name;
  }
  open_ = held.kind;
  sink_.open(head);
}

void MessageBlocks::close() {
  if (open_) sink_.close();
  open_.reset();
}

// The original's ids begin with "toolu_" and have only these characters; clients send them back as
// they are, so nothing must be remembered.
std::string MessageBlocks::public_id(const Call& call, std::size_t number) const {
  constexpr std::string_view kPrefix = "toolu_";
  constexpr std::string_view kAllowed =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-";
  if (call.id.empty()) return fmt::format("{}{}{}", kPrefix, options_.call_id_seed, number);
  std::string id = call.id.starts_with(kPrefix) ? "" : std::string(kPrefix);
  for (const char c : call.id) id.push_back(kAllowed.find(c) == std::string_view::npos ? '_' : c);
  return id;
}

Status MessageBlocks::flush_joiners() {
  std::string thinking;
  thinking_joiner_.finish(thinking);
  if (Status status = add(BlockKind::thinking, std::move(thinking)); !status) return status;
  std::string text;
  text_joiner_.finish(text);
  if (Status status = add(BlockKind::text, std::move(text)); !status) return status;
  for (std::size_t i = 0; i < calls_.size(); ++i) {
    std::string arguments;
    calls_[i].joiner.finish(arguments);
    if (Status status = add_arguments(i, std::move(arguments)); !status) return status;
  }
  return {};
}

Status MessageBlocks::check_calls() {
  for (Call& call : calls_) {
    if (!call.has_arguments) continue;
    const bool whole = call.arguments.finish().has_value();
    if (whole && call.arguments.root() == JsonKind::object) continue;
    return broken(
        fmt::format("the engine called the tool '{}' with arguments that are no JSON "
                    "object",
                    call.name));
  }
  return {};
}

// What was really sent decides, not what the engine says about it.
StopReason MessageBlocks::stop_reason(const chat::Finished& finished,
                                      bool met_stop_sequence) const {
  switch (finished.reason) {
    case chat::FinishReason::length: return StopReason::max_tokens;
    case chat::FinishReason::context: return StopReason::model_context_window_exceeded;
    case chat::FinishReason::content_filter: return StopReason::refusal;
    case chat::FinishReason::stop:
    case chat::FinishReason::tool_calls: break;
  }
  if (!calls_.empty()) return StopReason::tool_use;
  return met_stop_sequence ? StopReason::stop_sequence : StopReason::end_turn;
}

Status MessageBlocks::take(const chat::Finished& finished) {
  start({});
  if (Status status = flush_joiners(); !status) return status;
  if (std::ranges::any_of(calls_, [](const Call& call) { return call.name.empty(); }))
    return broken("the engine sent a tool call without a name");
  MessageEnd end;
  const bool met = finished.stop_sequence &&
                   std::ranges::find(options_.stop_sequences, *finished.stop_sequence) !=
                       options_.stop_sequences.end();
  end.reason = stop_reason(finished, met);
  // A limit may cut arguments anywhere; nothing else may.
  if (end.reason == StopReason::tool_use) {
    if (Status status = check_calls(); !status) return status;
  }
  if (Status status = advance(Ending::yes); !status) return status;
  close();
  if (end.reason == StopReason::stop_sequence) end.stop_sequence = finished.stop_sequence;
  end.usage = usage_of(started_.prompt_tokens, started_.cached_tokens, 0);
  end.usage.output_tokens = std::nullopt;
  if (finished.usage) {
    const chat::Usage& usage = *finished.usage;
    if (usage.prompt_tokens > 0)
      end.usage = usage_of(usage.prompt_tokens, usage.cached_tokens, usage.completion_tokens);
    end.usage.output_tokens = usage.completion_tokens;
  } else if (started_.prompt_tokens == 0) {
    end.usage.input_tokens = end.usage.cache_read_input_tokens = std::nullopt;
  }
  sink_.end(end);
  state_ = State::over;
  return {};
}

}  // namespace werk::gateway
