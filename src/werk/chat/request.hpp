// What a client asks of a model, in words that belong to no dialect: every dialect is read into it
// and every engine gets its request from it. Plain data; the caller owns it, any thread. JSON that
// a dialect passes through (parameters of tools, arguments of calls, schemas) stays text, byte for
// byte, since prompts and prompt caches depend on its order and spelling.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

namespace werk::chat {

struct Text {
  std::string text;  // UTF-8
};

struct Image {
  std::string media_type;  // "image/png"
  std::string base64;      // its bytes in the standard alphabet
};

// What the assistant thought in an earlier turn. Not every template can use it.
struct Reasoning {
  std::string text;
};

struct ToolCall {
  std::string id;
  std::string name;
  std::string arguments;  // JSON text of an object
};

struct ToolResult {
  std::string call_id;
  std::vector<std::variant<Text, Image>> parts;
  bool is_error = false;
};

using Part = std::variant<Text, Image, Reasoning, ToolCall, ToolResult>;

// Who speaks. Messages of `tool` hold only results, those of other roles none.
enum class Role : std::uint8_t { system, user, assistant, tool };

struct Message {
  Role role = Role::user;
  std::vector<Part> parts;
};

struct Tool {
  std::string name;
  std::string description;  // may be empty
  std::string parameters;   // JSON Schema, the text of an object
};

enum class ToolUse : std::uint8_t { unset, automatic, required, named, none };

struct ToolChoice {
  ToolUse use = ToolUse::unset;
  std::string name;  // with `named`
};

enum class ReasoningSwitch : std::uint8_t { unset, on, off, adaptive };
enum class Effort : std::uint8_t { unset, low, medium, high };

struct Request {
  std::vector<Message> messages;  // in the client's order, no two neighbours of one role
  std::vector<Tool> tools;
  ToolChoice tool_choice;
  std::optional<bool> parallel_tool_calls;
  std::optional<std::uint64_t> max_tokens;  // 0: only read the prompt
  std::vector<std::string> stop_sequences;  // none is empty
  std::optional<double> temperature;
  std::optional<double> top_p;
  std::optional<std::uint64_t> top_k;
  ReasoningSwitch reasoning = ReasoningSwitch::unset;
  std::optional<std::uint64_t> reasoning_budget_tokens;
  Effort effort = Effort::unset;
  std::string response_schema;  // JSON Schema that the answer must meet; empty: none
  std::string user;             // the client's own name for whom it acts; empty: none
};

// Whether the answer continues an assistant turn that the client began. Not every engine can.
inline bool has_prefill(const Request& request) {
  return !request.messages.empty() && request.messages.back().role == Role::assistant;
}

}  // namespace werk::chat
