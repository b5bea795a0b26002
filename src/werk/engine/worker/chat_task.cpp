#include "werk/engine/worker/chat_task.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>

namespace werk::engine::worker {

namespace json = boost::json;

namespace {

constexpr std::size_t kDepthMax = 256;
constexpr std::size_t kStopsMax = 64;

tl::unexpected<Error> wrong(ErrorCode code, std::string_view member, std::string message) {
  Error error{code, std::move(message), Origin::client};
  error.param = member;
  return fail(std::move(error));
}

tl::unexpected<Error> cannot(std::string_view member, std::string_view what) {
  return wrong(ErrorCode::unsupported, member,
               fmt::format("this engine {} (\"{}\")", what, member));
}

const json::value* given(const json::object& object, std::string_view name) {
  const json::value* value = object.if_contains(name);
  return value == nullptr || value->is_null() ? nullptr : value;
}

bool is_zero(const json::value& value) {
  return value.is_number() && value.to_number<double>() == 0;
}

bool is_empty(const json::value& value) {
  return (value.is_object() && value.get_object().empty()) ||
         (value.is_array() && value.get_array().empty());
}

// Members that would change the answer and that no worker knows.
Status refuse_unknown_wishes(const json::object& body) {
  for (const std::string_view name : {"presence_penalty", "frequency_penalty"}) {
    const json::value* value = given(body, name);
    if (value != nullptr && !is_zero(*value)) return cannot(name, "has no such penalty");
  }
  if (const json::value* bias = given(body, "logit_bias"); bias != nullptr && !is_empty(*bias))
    return cannot("logit_bias", "can't bias tokens");
  if (const json::value* wanted = given(body, "logprobs"); wanted != nullptr && *wanted == true)
    return cannot("logprobs", "tells no probabilities");
  if (const json::value* grammar = given(body, "grammar"); grammar != nullptr)
    return cannot("grammar", "can't be bound to a grammar");
  const json::value* format = given(body, "response_format");
  if (format != nullptr && format->is_object()) {
    const json::value* type = given(format->get_object(), "type");
    if (type != nullptr && *type != "text")
      return cannot("response_format", "can't be bound to a format");
  }
  return {};
}

// The text of a message's content: parts are joined as llama-server joins them.
Result<json::string> text_of(const json::value& content) {
  if (content.is_string()) return content.get_string();
  json::string joined;
  if (content.is_array()) {
    for (const json::value& part : content.get_array()) {
      const json::value* text = part.is_object() ? part.get_object().if_contains("text") : nullptr;
      if (text == nullptr || !text->is_string()) {
        return cannot("messages", "reads only text");
      }
      if (!joined.empty()) joined += "\n";
      joined += text->get_string();
    }
  }
  return joined;
}

// Templates index into arguments, so a text becomes the object that it spells.
void open_arguments(json::object& message) {
  json::value* calls = message.if_contains("tool_calls");
  if (calls == nullptr || !calls->is_array()) return;
  for (json::value& call : calls->get_array()) {
    json::value* function = call.is_object() ? call.get_object().if_contains("function") : nullptr;
    if (function == nullptr || !function->is_object()) continue;
    json::value* arguments = function->get_object().if_contains("arguments");
    if (arguments == nullptr || !arguments->is_string()) continue;
    boost::system::error_code error;
    json::value spelled = json::parse(arguments->get_string(), error);
    if (!error && spelled.is_object()) *arguments = std::move(spelled);
  }
}

Result<json::array> messages_of(const json::object& body) {
  const json::value* list = given(body, "messages");
  if (list == nullptr || !list->is_array() || list->get_array().empty())
    return wrong(ErrorCode::invalid_request, "messages",
                 "messages must be a list that isn't empty");
  json::array messages;
  for (const json::value& one : list->get_array()) {
    if (!one.is_object())
      return wrong(ErrorCode::invalid_request, "messages", "each message must be an object");
    json::object message = one.get_object();
    if (json::value* content = message.if_contains("content")) {
      auto text = text_of(*content);
      if (!text) return pass_on(text);
      *content = std::move(*text);
    }
    // Templates know the other name of the same role.
    if (json::value* role = message.if_contains("role"); role != nullptr && *role == "developer")
      *role = "system";
    open_arguments(message);
    messages.emplace_back(std::move(message));
  }
  return messages;
}

Status add_tools(const json::object& body, ChatTask& task, json::object& prompt) {
  const json::value* tools = given(body, "tools");
  if (tools == nullptr || !tools->is_array() || tools->get_array().empty()) return {};
  const json::value* choice = given(body, "tool_choice");
  if (choice != nullptr && *choice == "none") return {};
  if (choice != nullptr && *choice != "auto")
    return cannot("tool_choice", "can't force a tool call");
  prompt["tools"] = *tools;
  task.has_tools = true;
  return {};
}

Result<json::object> sampling_of(const json::object& body) {
  static constexpr std::array<std::string_view, 5> kNumbers = {
      "temperature", "top_p", "min_p", "repetition_penalty", "repeat_penalty"};
  json::object sampling;
  for (const std::string_view name : kNumbers) {
    const json::value* value = given(body, name);
    if (value == nullptr) continue;
    if (!value->is_number() || value->to_number<double>() < 0)
      return wrong(ErrorCode::invalid_request, name,
                   fmt::format("{} must be a number from 0", name));
    sampling[name == "repeat_penalty" ? "repetition_penalty" : name] = *value;
  }
  for (const std::string_view name : {"top_k", "seed"}) {
    const json::value* value = given(body, name);
    if (value == nullptr) continue;
    if (!value->is_int64() && !value->is_uint64())
      return wrong(ErrorCode::invalid_request, name,
                   fmt::format("{} must be a whole number", name));
    // What is below zero leaves it to the engine, as llama-server has it.
    const bool unset = value->is_int64() && value->get_int64() < 0;
    if (!unset) sampling[name] = *value;
  }
  return sampling;
}

Status add_stops(const json::object& body, ChatTask& task) {
  const json::value* stop = given(body, "stop");
  if (stop == nullptr) return {};
  if (stop->is_string()) {
    task.stops.emplace_back(stop->get_string());
    return {};
  }
  const bool sound = stop->is_array() && stop->get_array().size() <= kStopsMax &&
                     std::ranges::all_of(stop->get_array(), &json::value::is_string);
  if (!sound) {
    return wrong(ErrorCode::invalid_request, "stop",
                 fmt::format("stop must be a text or a list of at most {} texts", kStopsMax));
  }
  for (const json::value& one : stop->get_array()) task.stops.emplace_back(one.get_string());
  return {};
}

// Below zero there is no limit.
Result<std::optional<std::uint64_t>> max_tokens_of(const json::object& body) {
  for (const std::string_view name : {"max_completion_tokens", "max_tokens"}) {
    const json::value* value = given(body, name);
    if (value == nullptr) continue;
    if (value->is_int64() && value->get_int64() < 0) return std::nullopt;
    if (value->is_int64()) return static_cast<std::uint64_t>(value->get_int64());
    return wrong(ErrorCode::invalid_request, name, fmt::format("{} must be a whole number", name));
  }
  return std::nullopt;
}

// The members of an object without its braces.
std::string inside(const json::object& object) {
  const std::string text = json::serialize(object);
  return text.substr(1, text.size() - 2);
}

std::string message(std::string_view type, RequestId id, const std::string& members) {
  return fmt::format(R"({{"type":"{}","id":{},{}}})", type, id, members);
}

}  // namespace

Result<ChatTask> read_chat_task(std::string_view text) {
  json::parse_options options;
  options.max_depth = kDepthMax;
  boost::system::error_code error;
  const json::value value = json::parse(text, error, {}, options);
  if (error || !value.is_object())
    return wrong(ErrorCode::invalid_request, "", "the body must be a JSON object");
  const json::object& body = value.get_object();
  ChatTask task;
  if (Status known = refuse_unknown_wishes(body); !known) return pass_on(known);
  auto messages = messages_of(body);
  if (!messages) return pass_on(messages);
  json::object prompt;
  prompt["messages"] = std::move(*messages);
  if (Status added = add_tools(body, task, prompt); !added) return pass_on(added);
  const json::value* variables = given(body, "chat_template_kwargs");
  if (variables != nullptr && variables->is_object()) prompt["template"] = *variables;
  if (Status added = add_stops(body, task); !added) return pass_on(added);
  auto sampling = sampling_of(body);
  if (!sampling) return pass_on(sampling);
  auto max_tokens = max_tokens_of(body);
  if (!max_tokens) return pass_on(max_tokens);
  task.prompt_members = inside(prompt);
  prompt["sampling"] = std::move(*sampling);
  if (*max_tokens) prompt["max_tokens"] = **max_tokens;
  task.members = inside(prompt);
  const json::value* verbose = given(body, "verbose");
  task.tells_stop = verbose != nullptr && *verbose == true;
  return task;
}

std::string generate_message(RequestId id, const ChatTask& task) {
  return message("generate", id, task.members);
}

std::string count_message(RequestId id, const ChatTask& task) {
  return message("count", id, task.prompt_members);
}

}  // namespace werk::engine::worker
