#include "werk/gateway/openai_render.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "werk/base/json_cursor.hpp"

namespace werk::gateway {
namespace {

// Writes the members of one object and remembers their names.
class ObjectWriter {
 public:
  explicit ObjectWriter(std::string& out) : out_(out) { out_.push_back('{'); }

  // The value is to be appended to the text afterwards.
  std::string& name(std::string_view name) {
    if (!names_.empty()) out_.push_back(',');
    names_.emplace_back(name);
    append_json_string(out_, name);
    out_.push_back(':');
    return out_;
  }
  void json(std::string_view name, std::string_view value) { this->name(name) += value; }
  void text(std::string_view name, std::string_view value) {
    append_json_string(this->name(name), value);
  }
  void number(std::string_view name, std::uint64_t value) { json(name, fmt::to_string(value)); }
  bool has(std::string_view name) const { return std::ranges::find(names_, name) != names_.end(); }
  void close() { out_.push_back('}'); }

 private:
  std::string& out_;
  std::vector<std::string> names_;
};

// One message for the engine; the parts are borrowed.
struct Turn {
  chat::Role role = chat::Role::user;
  std::vector<const chat::Image*> images;  // of tool results, before the rest
  std::vector<const chat::Part*> parts;
};

bool has_images(const Turn& turn) {
  return !turn.images.empty() || std::ranges::any_of(turn.parts, [](const chat::Part* part) {
    return std::holds_alternative<chat::Image>(*part);
  });
}

void collect_images(const chat::Message& message, std::vector<const chat::Image*>& images) {
  for (const chat::Part& part : message.parts) {
    const auto* result = std::get_if<chat::ToolResult>(&part);
    if (result == nullptr) continue;
    for (const auto& each : result->parts) {
      if (const auto* image = std::get_if<chat::Image>(&each)) images.push_back(image);
    }
  }
}

// Messages as the engine is to see them: tool messages hold text only, so the images of results
// come in the user message behind them.
std::vector<Turn> turns_of(const chat::Request& request, SystemPlace system_place) {
  std::vector<Turn> turns;
  for (const chat::Message& message : request.messages) {
    const bool told_by_user = message.role == chat::Role::system && !turns.empty() &&
                              system_place == SystemPlace::only_first;
    const chat::Role role = told_by_user ? chat::Role::user : message.role;
    if (role != chat::Role::user || turns.empty() || turns.back().role != role)
      turns.push_back(Turn{role, {}, {}});
    for (const chat::Part& part : message.parts) turns.back().parts.push_back(&part);
    if (role != chat::Role::tool) continue;
    Turn seen{chat::Role::user, {}, {}};
    collect_images(message, seen.images);
    if (!seen.images.empty()) turns.push_back(std::move(seen));
  }
  return turns;
}

std::string joined_text(const Turn& turn, std::string_view between) {
  std::string text;
  bool first = true;
  for (const chat::Part* part : turn.parts) {
    const auto* each = std::get_if<chat::Text>(part);
    if (each == nullptr) continue;
    if (!std::exchange(first, false)) text += between;
    text += each->text;
  }
  return text;
}

void append_image(std::string& out, const chat::Image& image) {
  ObjectWriter part(out);
  part.text("type", "image_url");
  ObjectWriter url(part.name("image_url"));
  url.text("url", fmt::format("data:{};base64,{}", image.media_type, image.base64));
  url.close();
  part.close();
}

void append_user_parts(std::string& out, const Turn& turn) {
  out.push_back('[');
  const auto next = [&] {
    if (out.back() != '[') out.push_back(',');
  };
  for (const chat::Image* image : turn.images) {
    next();
    append_image(out, *image);
  }
  for (const chat::Part* each : turn.parts) {
    if (const auto* image = std::get_if<chat::Image>(each)) {
      next();
      append_image(out, *image);
    } else if (const auto* text = std::get_if<chat::Text>(each)) {
      next();
      ObjectWriter part(out);
      part.text("type", "text");
      part.text("text", text->text);
      part.close();
    }
  }
  out.push_back(']');
}

void append_calls(std::string& out, const Turn& turn) {
  out.push_back('[');
  for (const chat::Part* part : turn.parts) {
    const auto* call = std::get_if<chat::ToolCall>(part);
    if (call == nullptr) continue;
    if (out.back() != '[') out.push_back(',');
    ObjectWriter member(out);
    member.text("id", call->id);
    member.text("type", "function");
    ObjectWriter function(member.name("function"));
    function.text("name", call->name);
    function.text("arguments", call->arguments);
    function.close();
    member.close();
  }
  out.push_back(']');
}

void append_assistant(std::string& out, const Turn& turn, EarlierReasoning earlier_reasoning) {
  std::string reasoning;
  bool calls = false;
  for (const chat::Part* part : turn.parts) {
    if (const auto* each = std::get_if<chat::Reasoning>(part)) reasoning += each->text;
    calls = calls || std::holds_alternative<chat::ToolCall>(*part);
  }
  const std::string text = joined_text(turn, "");
  ObjectWriter message(out);
  message.text("role", "assistant");
  if (earlier_reasoning == EarlierReasoning::send && !reasoning.empty())
    message.text("reasoning_content", reasoning);
  if (text.empty() && calls) {
    message.json("content", "null");
  } else {
    message.text("content", text);
  }
  if (calls) append_calls(message.name("tool_calls"), turn);
  message.close();
}

void append_result(std::string& out, const chat::ToolResult& result) {
  std::string text = result.is_error ? "Error: " : "";
  bool first = true;
  for (const auto& part : result.parts) {
    const auto* each = std::get_if<chat::Text>(&part);
    if (each == nullptr) continue;
    if (!std::exchange(first, false)) text.push_back('\n');
    text += each->text;
  }
  ObjectWriter message(out);
  message.text("role", "tool");
  message.text("tool_call_id", result.call_id);
  message.text("content", text);
  message.close();
}

void append_turn(std::string& out, const Turn& turn, const OpenAiRenderOptions& options) {
  if (turn.role == chat::Role::assistant)
    return append_assistant(out, turn, options.earlier_reasoning);
  if (turn.role == chat::Role::tool) {
    for (const chat::Part* part : turn.parts) {
      if (out.back() != '[' && out.back() != ',') out.push_back(',');
      if (const auto* result = std::get_if<chat::ToolResult>(part)) append_result(out, *result);
    }
    return;
  }
  const bool system = turn.role == chat::Role::system;
  ObjectWriter message(out);
  message.text("role", system ? "system" : "user");
  if (has_images(turn)) {
    append_user_parts(message.name("content"), turn);
  } else {
    message.text("content", joined_text(turn, system ? "\n\n" : "\n"));
  }
  message.close();
}

void append_messages(std::string& out, const chat::Request& request,
                     const OpenAiRenderOptions& options) {
  out.push_back('[');
  for (const Turn& turn : turns_of(request, options.system_place)) {
    if (out.back() != '[') out.push_back(',');
    append_turn(out, turn, options);
  }
  out.push_back(']');
}

void append_tool(std::string& out, const chat::Tool& tool) {
  ObjectWriter member(out);
  member.text("type", "function");
  ObjectWriter function(member.name("function"));
  function.text("name", tool.name);
  if (!tool.description.empty()) function.text("description", tool.description);
  if (!tool.parameters.empty()) function.json("parameters", tool.parameters);
  function.close();
  member.close();
}

void add_tools(ObjectWriter& body, const chat::Request& request, NamedTool named_tool) {
  if (request.tools.empty()) return;
  const chat::ToolChoice& choice = request.tool_choice;
  const bool named = choice.use == chat::ToolUse::named;
  const bool alone = named && named_tool == NamedTool::as_only_tool;
  std::string& out = body.name("tools");
  out.push_back('[');
  for (const chat::Tool& tool : request.tools) {
    if (alone && tool.name != choice.name) continue;
    if (out.back() != '[') out.push_back(',');
    append_tool(out, tool);
  }
  out.push_back(']');
  if (choice.use == chat::ToolUse::automatic) body.text("tool_choice", "auto");
  if (choice.use == chat::ToolUse::none) body.text("tool_choice", "none");
  if (choice.use == chat::ToolUse::required || alone) body.text("tool_choice", "required");
  if (named && !alone) {
    body.json("tool_choice", fmt::format(R"({{"type":"function","function":{{"name":{}}}}})",
                                         to_json_string(choice.name)));
  }
  if (request.parallel_tool_calls)
    body.json("parallel_tool_calls", *request.parallel_tool_calls ? "true" : "false");
}

void add_sampling(ObjectWriter& body, const chat::Request& request,
                  const OpenAiRenderOptions& options) {
  const std::string& limit = options.taken.output_limit;
  if (request.max_tokens)
    body.number(limit.empty() ? std::string_view("max_tokens") : limit, *request.max_tokens);
  if (request.temperature) body.json("temperature", fmt::format("{}", *request.temperature));
  if (request.top_p) body.json("top_p", fmt::format("{}", *request.top_p));
  if (request.top_k) body.number("top_k", *request.top_k);
  if (request.stop_sequences.empty()) return;
  std::string& out = body.name("stop");
  out.push_back('[');
  for (const std::string& stop : request.stop_sequences) {
    if (out.back() != '[') out.push_back(',');
    append_json_string(out, stop);
  }
  out.push_back(']');
  if (options.stop_report == StopReport::llama_verbose) {
    body.json("verbose", "true");
    body.json("response_fields", R"(["stopping_word"])");
  }
}

std::string_view word_of(chat::Effort effort) {
  switch (effort) {
    case chat::Effort::low: return "low";
    case chat::Effort::medium: return "medium";
    case chat::Effort::high: return "high";
    case chat::Effort::unset: return "";
  }
  return "";
}

void add_reasoning(ObjectWriter& body, const chat::Request& request,
                   const OpenAiRenderOptions& options) {
  using chat::ReasoningSwitch;
  const bool off = request.reasoning == ReasoningSwitch::off;
  if (off || request.reasoning == ReasoningSwitch::on) {
    body.json("chat_template_kwargs",
              off ? R"({"enable_thinking":false})" : R"({"enable_thinking":true})");
  }
  if (off) return;
  if (request.effort != chat::Effort::unset) body.text("reasoning_effort", word_of(request.effort));
  if (request.reasoning_budget_tokens && !options.reasoning_budget_member.empty())
    body.number(options.reasoning_budget_member, *request.reasoning_budget_tokens);
}

}  // namespace

std::string render_openai_chat(const chat::Request& request, const OpenAiRenderOptions& options) {
  std::string out;
  ObjectWriter body(out);
  body.text("model", options.engine_model);
  append_messages(body.name("messages"), request, options);
  add_tools(body, request, options.named_tool);
  add_sampling(body, request, options);
  add_reasoning(body, request, options);
  if (!request.response_schema.empty()) {
    body.json(
        "response_format",
        fmt::format(R"({{"type":"json_schema","json_schema":{{"name":"answer","schema":{}}}}})",
                    request.response_schema));
  }
  if (!request.user.empty()) body.text("user", request.user);
  body.json("stream", "true");
  if (options.taken.stream_options) body.json("stream_options", R"({"include_usage":true})");
  if (options.taken.progress) body.json("return_progress", "true");
  const bool thinks = request.reasoning != chat::ReasoningSwitch::off;
  for (const auto& [name, value] : options.defaults) {
    if (!body.has(name) && (thinks || name != "reasoning_effort")) body.json(name, value);
  }
  body.close();
  return out;
}

}  // namespace werk::gateway
