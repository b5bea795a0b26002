#include "werk/gateway/messages_request.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "werk/base/json_cursor.hpp"
#include "werk/gateway/messages_content.hpp"
#include "werk/gateway/object_reader.hpp"

namespace werk::gateway {
namespace {

using Parts = std::vector<chat::Part>;

constexpr JsonKind kObject = JsonKind::object;
constexpr JsonKind kArray = JsonKind::array;

// Appends to the last message if it is of this role: neighbours of one role are one turn.
void append_message(chat::Request& chat, chat::Role role, Parts parts) {
  if (chat.messages.empty() || chat.messages.back().role != role) {
    chat.messages.push_back(chat::Message{role, std::move(parts)});
    return;
  }
  Parts& known = chat.messages.back().parts;
  // An assistant's texts are joined as they are, so two turns need something between them.
  const bool glued = role == chat::Role::assistant && !known.empty() && !parts.empty() &&
                     std::holds_alternative<chat::Text>(known.back()) &&
                     std::holds_alternative<chat::Text>(parts.front());
  if (glued) known.emplace_back(chat::Text{"\n\n"});
  std::ranges::move(parts, std::back_inserter(known));
}

// Collects neighbouring turns of one role and puts them into the request as messages.
class TurnCollector {
 public:
  explicit TurnCollector(chat::Request& chat) : chat_(chat) {}

  void add_user(Parts parts) {
    for (chat::Part& part : parts) {
      const bool result = std::holds_alternative<chat::ToolResult>(part);
      (result ? results_ : user_).push_back(std::move(part));
    }
    in_user_turn_ = true;
  }
  void add(chat::Role role, Parts parts) {
    end_user_turn();
    append_message(chat_, role, std::move(parts));
  }
  void finish() {
    end_user_turn();
    // An empty turn of the assistant is nothing to continue.
    if (chat::has_prefill(chat_) && chat_.messages.back().parts.empty()) chat_.messages.pop_back();
  }

 private:
  // Results stand before the rest of their turn, right behind the calls.
  void end_user_turn() {
    if (!std::exchange(in_user_turn_, false)) return;
    const bool has_results = !results_.empty();
    if (has_results) append_message(chat_, chat::Role::tool, std::exchange(results_, {}));
    if (!has_results || !user_.empty())
      append_message(chat_, chat::Role::user, std::exchange(user_, {}));
  }

  chat::Request& chat_;
  Parts results_;
  Parts user_;
  bool in_user_turn_ = false;
};

// Takes the line out of a text that begins with it. Whether it did.
bool cut_line(std::string& text, std::string_view line_begins_with) {
  if (!text.starts_with(line_begins_with)) return false;
  const std::size_t line_end = std::min(text.find('\n'), text.size());
  const std::size_t rest = std::min(text.find_first_not_of("\r\n", line_end), text.size());
  text.erase(0, rest);
  return true;
}

bool edit_system(Parts& parts) {
  bool edited = false;
  for (chat::Part& part : parts) {
    auto* text = std::get_if<chat::Text>(&part);
    if (text == nullptr) continue;
    for (const PromptEdit& edit : kPromptEdits)
      edited = cut_line(text->text, edit.line_begins_with) || edited;
  }
  std::erase_if(parts, [](const chat::Part& part) {
    const auto* text = std::get_if<chat::Text>(&part);
    return text != nullptr && text->text.empty();
  });
  return edited;
}

Status read_system(const ObjectReader& top, PromptEdits edits, TurnCollector& turns,
                   MessagesRequest& request) {
  const std::string_view system = top.value("system");
  if (system.empty()) return {};
  Parts parts;
  Status status = read_messages_content(system, "system", ContentPlace::system, parts);
  if (!status) return status;
  if (edits == PromptEdits::apply) request.edited = edit_system(parts);
  if (!parts.empty()) turns.add(chat::Role::system, std::move(parts));
  return {};
}

Status read_message(std::string_view text, std::string where, TurnCollector& turns) {
  auto message = ObjectReader::open(text, std::move(where), {"role", "content"});
  if (!message) return pass_on(message);
  auto role = message->required_string("role");
  if (!role) return pass_on(role);
  const bool user = *role == "user";
  const bool assistant = *role == "assistant";
  if (!user && !assistant && *role != "system") {
    return bad_member(message->path("role"),
                      fmt::format("'{}' is {}; known are user, assistant and system",
                                  message->path("role"), quoted_word(*role)));
  }
  const ContentPlace place = user        ? ContentPlace::user
                             : assistant ? ContentPlace::assistant
                                         : ContentPlace::system;
  Parts parts;
  Status status =
      read_messages_content(message->value("content"), message->path("content"), place, parts);
  if (!status) return status;
  if (user) {
    turns.add_user(std::move(parts));
  } else if (assistant || !parts.empty()) {
    turns.add(assistant ? chat::Role::assistant : chat::Role::system, std::move(parts));
  }
  return {};
}

Status read_messages(const ObjectReader& top, TurnCollector& turns) {
  auto messages = top.required("messages", kArray);
  if (!messages) return pass_on(messages);
  std::size_t index = 0;
  JsonArrayCursor each(*messages);
  while (const auto message = each.next()) {
    Status status = read_message(*message, element_path("messages", index++), turns);
    if (!status) return status;
  }
  if (index == 0) return bad_member("messages", "'messages' is empty");
  turns.finish();
  return {};
}

// Tools that the original's servers run are known by their type; a client's own tools have none or
// "custom".
Status read_tool(std::string_view text, std::string where, MessagesRequest& request,
                 std::vector<std::string>& dropped) {
  auto tool =
      ObjectReader::open(text, std::move(where), {"type", "name", "description", "input_schema"});
  if (!tool) return pass_on(tool);
  auto type = tool->string("type");
  if (!type) return pass_on(type);
  if (type->value_or("custom") != "custom") {
    auto name = tool->string("name");
    if (!name) return pass_on(name);
    dropped.push_back(name->value_or(**type));
    ++request.dropped_server_tools;
    return {};
  }
  auto name = tool->required_string("name");
  if (!name) return pass_on(name);
  auto description = tool->string("description");
  if (!description) return pass_on(description);
  auto schema = tool->required("input_schema", kObject);
  if (!schema) return pass_on(schema);
  request.chat.tools.push_back(
      chat::Tool{std::move(*name), description->value_or(""), std::string(*schema)});
  return {};
}

Status read_named_choice(const ObjectReader& choice, const std::vector<std::string>& dropped,
                         chat::Request& chat) {
  auto name = choice.required_string("name");
  if (!name) return pass_on(name);
  const bool known =
      std::ranges::any_of(chat.tools, [&](const chat::Tool& tool) { return tool.name == *name; });
  if (!known) {
    const bool server = std::ranges::find(dropped, *name) != dropped.end();
    return bad_member(
        choice.path("name"),
        server ? fmt::format("the tool {} runs on the servers of its maker only; a local model "
                             "can't be made to call it",
                             quoted_word(*name))
               : fmt::format("'tool_choice' names {}, which is not among the tools",
                             quoted_word(*name)));
  }
  chat.tool_choice = chat::ToolChoice{chat::ToolUse::named, std::move(*name)};
  return {};
}

Status read_tool_choice(const ObjectReader& top, const std::vector<std::string>& dropped,
                        chat::Request& chat) {
  auto text = top.value("tool_choice", kObject);
  if (!text) return pass_on(text);
  if (text->empty()) return {};
  auto choice =
      ObjectReader::open(*text, "tool_choice", {"type", "name", "disable_parallel_tool_use"});
  if (!choice) return pass_on(choice);
  auto type = choice->required_string("type");
  if (!type) return pass_on(type);
  auto single = choice->boolean("disable_parallel_tool_use");
  if (!single) return pass_on(single);
  if (*type == "tool") {
    if (Status status = read_named_choice(*choice, dropped, chat); !status) return status;
  } else if (*type == "auto") {
    chat.tool_choice.use = chat::ToolUse::automatic;
  } else if (*type == "any") {
    chat.tool_choice.use = chat::ToolUse::required;
  } else if (*type == "none") {
    chat.tool_choice.use = chat::ToolUse::none;
  } else {
    return bad_member(choice->path("type"),
                      fmt::format("'{}' is {}; known are auto, any, tool and none",
                                  choice->path("type"), quoted_word(*type)));
  }
  // Nothing is left to choose from when all tools were dropped.
  if (chat.tools.empty()) {
    chat.tool_choice = {};
  } else if (single->value_or(false)) {
    chat.parallel_tool_calls = false;
  }
  return {};
}

Status read_tools(const ObjectReader& top, MessagesRequest& request) {
  auto tools = top.value("tools", kArray);
  if (!tools) return pass_on(tools);
  std::vector<std::string> dropped;
  std::size_t index = 0;
  JsonArrayCursor each(*tools);
  while (const auto tool = each.next()) {
    Status status = read_tool(*tool, element_path("tools", index++), request, dropped);
    if (!status) return status;
  }
  return read_tool_choice(top, dropped, request.chat);
}

Status read_thinking(const ObjectReader& top, chat::Request& chat) {
  auto text = top.value("thinking", kObject);
  if (!text) return pass_on(text);
  if (text->empty()) return {};
  auto thinking = ObjectReader::open(*text, "thinking", {"type", "budget_tokens"});
  if (!thinking) return pass_on(thinking);
  auto type = thinking->required_string("type");
  if (!type) return pass_on(type);
  auto budget = thinking->count("budget_tokens");
  if (!budget) return pass_on(budget);
  // A kind of thinking that is not known leaves the model its own way.
  if (*type == "disabled") chat.reasoning = chat::ReasoningSwitch::off;
  if (*type == "adaptive") chat.reasoning = chat::ReasoningSwitch::adaptive;
  if (*type == "enabled") {
    chat.reasoning = chat::ReasoningSwitch::on;
    chat.reasoning_budget_tokens = *budget;
  }
  return {};
}

Status read_format(std::string_view text, std::string where, chat::Request& chat) {
  if (text.empty()) return {};
  auto format = ObjectReader::open(text, std::move(where), {"type", "schema"});
  if (!format) return pass_on(format);
  auto type = format->required_string("type");
  if (!type) return pass_on(type);
  if (*type == "text") return {};
  if (*type != "json_schema") {
    return unsupported_member(format->path("type"),
                              fmt::format("'{}' is {}; known are json_schema and text",
                                          format->path("type"), quoted_word(*type)));
  }
  auto schema = format->required("schema", kObject);
  if (!schema) return pass_on(schema);
  chat.response_schema = *schema;
  return {};
}

// `output_format` is the older place of `output_config.format`.
Status read_output(const ObjectReader& top, chat::Request& chat) {
  if (Status status = read_format(top.value("output_format"), "output_format", chat); !status)
    return status;
  auto text = top.value("output_config", kObject);
  if (!text) return pass_on(text);
  if (text->empty()) return {};
  auto config = ObjectReader::open(*text, "output_config", {"effort", "format"});
  if (!config) return pass_on(config);
  auto effort = config->string("effort");
  if (!effort) return pass_on(effort);
  const std::string word = effort->value_or("");
  if (word == "low") chat.effort = chat::Effort::low;
  if (word == "medium") chat.effort = chat::Effort::medium;
  if (word == "high" || word == "xhigh" || word == "max") chat.effort = chat::Effort::high;
  return read_format(config->value("format"), config->path("format"), chat);
}

Status read_stops(const ObjectReader& top, chat::Request& chat) {
  auto stops = top.value("stop_sequences", kArray);
  if (!stops) return pass_on(stops);
  std::size_t index = 0;
  JsonArrayCursor each(*stops);
  while (const auto stop = each.next()) {
    std::string path = element_path("stop_sequences", index++);
    auto word = json_string(*stop);
    if (!word) return bad_kind_of(std::move(path), name_of(JsonKind::string), *stop);
    if (!word->empty()) chat.stop_sequences.push_back(std::move(*word));
  }
  return {};
}

Status read_sampling(const ObjectReader& top, MessagesRequest& request) {
  auto stream = top.boolean("stream");
  if (!stream) return pass_on(stream);
  request.stream = stream->value_or(false);
  auto max_tokens = top.count("max_tokens");
  if (!max_tokens) return pass_on(max_tokens);
  if (!*max_tokens) return bad_member("max_tokens", "'max_tokens' is missing");
  request.chat.max_tokens = *max_tokens;
  auto temperature = top.number("temperature");
  if (!temperature) return pass_on(temperature);
  request.chat.temperature = *temperature;
  auto top_p = top.number("top_p");
  if (!top_p) return pass_on(top_p);
  request.chat.top_p = *top_p;
  auto top_k = top.count("top_k");
  if (!top_k) return pass_on(top_k);
  request.chat.top_k = *top_k;
  return read_stops(top, request.chat);
}

Status read_user(const ObjectReader& top, chat::Request& chat) {
  auto text = top.value("metadata", kObject);
  if (!text) return pass_on(text);
  if (text->empty()) return {};
  auto metadata = ObjectReader::open(*text, "metadata", {"user_id"});
  if (!metadata) return pass_on(metadata);
  auto user = metadata->string("user_id");
  if (!user) return pass_on(user);
  chat.user = user->value_or("");
  return {};
}

Status read_top(const ObjectReader& top, MessagesPurpose purpose, PromptEdits edits,
                MessagesRequest& request) {
  auto model = top.string("model");
  if (!model) return pass_on(model);
  if (*model && (*model)->empty()) return bad_member("model", "'model' is empty");
  request.model = std::move(*model);
  if (purpose == MessagesPurpose::generate) {
    if (Status status = read_sampling(top, request); !status) return status;
  }
  TurnCollector turns(request.chat);
  if (Status status = read_system(top, edits, turns, request); !status) return status;
  if (Status status = read_messages(top, turns); !status) return status;
  if (Status status = read_tools(top, request); !status) return status;
  if (Status status = read_thinking(top, request.chat); !status) return status;
  if (Status status = read_output(top, request.chat); !status) return status;
  return read_user(top, request.chat);
}

Error about_body(Error error) {
  error.message = "request body: " + error.message;
  return error;
}

}  // namespace

MessagesRequestReader::MessagesRequestReader(MessagesPurpose purpose, PromptEdits edits)
    : purpose_(purpose), edits_(edits), scanner_(JsonScanLimits{.notes = JsonNotes::nothing}) {}

Status MessagesRequestReader::feed(std::string_view piece) {
  Status status = scanner_.feed(piece);
  if (!status) return fail(about_body(std::move(status.error())));
  return {};
}

Result<MessagesRequest> MessagesRequestReader::finish(std::string_view body) {
  if (Status status = scanner_.finish(); !status)
    return fail(about_body(std::move(status.error())));
  if (scanner_.root() != JsonKind::object) {
    return bad_member({}, fmt::format("the request body is {} where a JSON object was expected",
                                      name_of(scanner_.root())));
  }
  auto top =
      ObjectReader::open(trim_json(body), {},
                         {"model", "messages", "system", "max_tokens", "stream", "stop_sequences",
                          "temperature", "top_p", "top_k", "tools", "tool_choice", "thinking",
                          "output_config", "output_format", "metadata"});
  if (!top) return pass_on(top);
  MessagesRequest request;
  if (Status status = read_top(*top, purpose_, edits_, request); !status) return pass_on(status);
  return request;
}

Result<MessagesRequest> read_messages_request(std::string_view body, MessagesPurpose purpose,
                                              PromptEdits edits) {
  MessagesRequestReader reader(purpose, edits);
  if (Status status = reader.feed(body); !status) return pass_on(status);
  return reader.finish(body);
}

}  // namespace werk::gateway
