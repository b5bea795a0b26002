// Renders a neutral request as the body of an OpenAI chat completion, for engines that speak that
// dialect. Always streamed, with usage. What engines and templates can't take is decided by the
// options, which come from the engine's profile. Equal requests and options give equal bytes, and a
// conversation that grows keeps the bytes of its beginning. A pure function, any thread.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "werk/chat/request.hpp"
#include "werk/gateway/openai_request.hpp"

namespace werk::gateway {

// What the assistant thought in earlier turns: `reasoning_content` of its messages, or left out
// where the template has no place for it.
enum class EarlierReasoning : std::uint8_t { leave_out, send };

// Some templates accept a system message only at the beginning. Later ones are then told by the
// user.
enum class SystemPlace : std::uint8_t { anywhere, only_first };

// How the engine is asked to say which stop sequence it met. vLLM tells unasked (`stop_reason`);
// llama-server tells in `__verbose.stopping_word` of the last chunks if asked for it, and only that
// if `response_fields` names nothing else (seen in its source, server-task.cpp).
enum class StopReport : std::uint8_t { unasked, llama_verbose };

struct OpenAiRenderOptions {
  std::string engine_model = {};  // what the engine calls the model
  EarlierReasoning earlier_reasoning = EarlierReasoning::leave_out;
  SystemPlace system_place = SystemPlace::anywhere;
  NamedTool named_tool = NamedTool::as_object;
  StopReport stop_report = StopReport::unasked;
  // The member that takes the budget of reasoning; llama-server: "reasoning_budget_tokens". Empty:
  // the engine has none.
  std::string reasoning_budget_member = {};
  TakenMembers taken = {};
  // Not added where they would contradict the request: an effort where thinking is off.
  RequestDefaults defaults = {};
};

std::string render_openai_chat(const chat::Request& request, const OpenAiRenderOptions& options);

}  // namespace werk::gateway
