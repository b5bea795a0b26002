#include "werk/engine/worker/answer_chunks.hpp"

#include <fmt/format.h>

#include <chrono>

#include "werk/base/json_cursor.hpp"

namespace werk::engine::worker {
namespace {

std::string_view reason_word(EndReason reason, bool has_calls) {
  // The context's end is told as OpenAI does: cut for its length.
  if (reason == EndReason::length || reason == EndReason::context) return "length";
  return has_calls ? "tool_calls" : "stop";
}

std::int64_t unix_seconds() {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::seconds>(now).count();
}

}  // namespace

AnswerChunks::AnswerChunks(const ChatTask& task, std::string name, std::string seed)
    : head_(fmt::format(
          R"({{"id":"chatcmpl-{}","object":"chat.completion.chunk","created":{},"model":{})", seed,
          unix_seconds(), to_json_string(name))),
      tells_stop_(task.tells_stop),
      gate_(task.stops) {
  if (task.has_tools) tools_.emplace(tool_formats().front(), "call_" + seed + "_");
}

void AnswerChunks::started(const GenerationStarted& started) {
  chunk("[]", fmt::format(R"(,"prompt_progress":{{"total":{},"cache":{},"processed":{}}})",
                          started.prompt_tokens, started.cached_tokens, started.cached_tokens));
}

void AnswerChunks::token(const TokenEvent& token) {
  if (met_stop()) return;
  tokens_ += token.tokens;
  std::string whole;
  joiner_.take(token.bytes, whole);
  text(whole);
}

void AnswerChunks::text(std::string_view piece) {
  std::string clear;
  gate_.take(piece, clear);
  if (clear.empty()) return;
  if (tools_) {
    [[maybe_unused]] const Status taken = tools_->take(clear, *this);  // event() never fails
  } else {
    [[maybe_unused]] const Status taken = event(chat::TextDelta{std::move(clear)});
  }
}

void AnswerChunks::finished(const GenerationFinished& finished) {
  std::string rest;
  if (!met_stop()) {
    std::string last;
    joiner_.finish(last);
    gate_.take(last, rest);
    gate_.finish(rest);
  }
  if (tools_) {
    [[maybe_unused]] Status taken = tools_->take(rest, *this);
    taken = tools_->finish(*this);
  } else if (!rest.empty()) {
    [[maybe_unused]] const Status taken = event(chat::TextDelta{std::move(rest)});
  }
  const bool has_calls = tools_ && tools_->calls() > 0;
  const EndReason reason = met_stop() ? EndReason::stop : finished.reason;
  std::string more;
  if (tells_stop_) {
    more = fmt::format(R"(,"__verbose":{{"stopping_word":{}}})",
                       to_json_string(gate_.matched().value_or("")));
  }
  if (!said_role_) delta(R"("content":"")");
  chunk(fmt::format(R"([{{"index":0,"delta":{{}},"finish_reason":"{}"}}])",
                    reason_word(reason, has_calls)),
        more);
  const std::uint64_t prompt = finished.usage.prompt_tokens;
  // What the worker made before it heard of the cancel was not asked for.
  const std::uint64_t completion = met_stop() ? tokens_ : finished.usage.completion_tokens;
  chunk("[]",
        fmt::format(R"(,"usage":{{"prompt_tokens":{},"completion_tokens":{},"total_tokens":{},)"
                    R"("prompt_tokens_details":{{"cached_tokens":{}}}}})",
                    prompt, completion, prompt + completion, finished.usage.cached_tokens));
  chunks_.emplace_back(kStreamEnd);
}

std::optional<std::string> AnswerChunks::next() {
  if (chunks_.empty()) return std::nullopt;
  std::string first = std::move(chunks_.front());
  chunks_.pop_front();
  return first;
}

Status AnswerChunks::event(const chat::GenerationEvent& event) {
  if (const auto* text = std::get_if<chat::TextDelta>(&event)) {
    delta(fmt::format(R"("content":{})", to_json_string(text->text)));
  } else if (const auto* call = std::get_if<chat::ToolCallDelta>(&event)) {
    delta(fmt::format(R"("tool_calls":[{{"index":{},"id":{},"type":"function","function":)"
                      R"({{"name":{},"arguments":{}}}}}])",
                      call->index, to_json_string(call->id), to_json_string(call->name),
                      to_json_string(call->arguments)));
  }
  return {};
}

void AnswerChunks::delta(const std::string& members) {
  const std::string_view role = said_role_ ? "" : R"("role":"assistant",)";
  said_role_ = true;
  chunk(fmt::format(R"([{{"index":0,"delta":{{{}{}}},"finish_reason":null}}])", role, members));
}

void AnswerChunks::chunk(std::string_view choices, std::string_view more) {
  chunks_.push_back(fmt::format(R"({},"choices":{}{}}})", head_, choices, more));
}

}  // namespace werk::engine::worker
