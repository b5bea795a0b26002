#include "werk/gateway/openai_request.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "werk/base/json_cursor.hpp"
#include "werk/base/json_splice.hpp"
#include "werk/base/text.hpp"

namespace werk::gateway {
namespace {

constexpr std::array<std::string_view, 13> kReadOrEdited = {
    "model", "messages",    "stream",     "stream_options",        "return_progress", "n",
    "tools", "tool_choice", "max_tokens", "max_completion_tokens", "response_format", "id_slot",
    "n_cmpl"};
constexpr std::array<std::string_view, 6> kRoles = {"system",    "developer", "user",
                                                    "assistant", "tool",      "function"};
constexpr std::uint64_t kChoicesMax = 128;

tl::unexpected<Error> bad(std::string param, std::string message) {
  Error error{ErrorCode::invalid_request, std::move(message), Origin::client};
  error.param = std::move(param);
  return fail(std::move(error));
}

tl::unexpected<Error> bad_kind(std::string param, std::string_view expected,
                               std::string_view value) {
  std::string message =
      fmt::format("'{}' must be {}, not {}", param, expected, name_of(json_kind(value)));
  return bad(std::move(param), std::move(message));
}

// A message or a part of its content; put into words only where something is wrong there.
struct Where {
  std::size_t message = 0;
  std::optional<std::size_t> part = std::nullopt;

  std::string path() const {
    std::string path = fmt::format("messages[{}]", message);
    if (part) path += fmt::format(".content[{}]", *part);
    return path;
  }
  std::string path(std::string_view member) const { return fmt::format("{}.{}", path(), member); }
};

// What one walk over an object finds.
template <std::size_t N>
struct Picked {
  std::array<std::string_view, N> values;  // empty for one that is absent or null
  std::array<bool, N> given{};             // null or not
  bool other_nulls = false;                // of members that weren't looked for
};

// These members; one that comes twice is an error, told by its path.
template <std::size_t N, class PathOf>
Result<Picked<N>> pick(std::string_view object, const std::array<std::string_view, N>& names,
                       const PathOf& path_of) {
  Picked<N> picked;
  JsonObjectCursor cursor(object);
  while (const auto member = cursor.next()) {
    const bool null = member->kind() == JsonKind::null;
    const auto name =
        std::ranges::find_if(names, [&](std::string_view wanted) { return member->is(wanted); });
    if (name == names.end()) {
      picked.other_nulls = picked.other_nulls || null;
      continue;
    }
    const auto at = static_cast<std::size_t>(name - names.begin());
    if (std::exchange(picked.given[at], true)) {
      std::string param = path_of(*name);
      return bad(param, fmt::format("the member '{}' is given twice", param));
    }
    if (!null) picked.values[at] = member->value;
  }
  return picked;
}

bool has_nulls(std::string_view object) {
  JsonObjectCursor cursor(object);
  while (const auto member = cursor.next()) {
    if (member->kind() == JsonKind::null) return true;
  }
  return false;
}

// Whether the text is an address that an engine would fetch: llama-server does for everything that
// begins with "http", in images, audio and video alike.
bool is_remote(std::string_view value) {
  constexpr std::size_t kHeadBytes = 128;
  const auto raw = json_string_raw(value);
  if (!raw) return false;
  const std::string head = to_lower(unescape_json(raw->substr(0, kHeadBytes)));
  return head.starts_with("http") || head.find("://") != std::string::npos;
}

// Looks at every member, since an engine may read another one of two equal names.
bool names_remote_media(std::string_view part) {
  JsonObjectCursor members(part);
  while (const auto member = members.next()) {
    if (is_remote(member->value)) return true;
    JsonObjectCursor inner(member->value);
    while (const auto each = inner.next()) {
      if (is_remote(each->value)) return true;
    }
  }
  return false;
}

// Checks one part of a message's content. Yields whether it is text.
Result<bool> check_part(std::string_view part, const Where& where, ChatRequestView& view) {
  if (json_kind(part) != JsonKind::object) return bad_kind(where.path(), "an object", part);
  constexpr std::array<std::string_view, 2> kMembers = {"type", "text"};
  const auto path_of = [&where](std::string_view name) { return where.path(name); };
  const auto found = pick(part, kMembers, path_of);
  if (!found) return fail(found.error());
  const auto& [type_text, text] = found->values;
  if (type_text.empty())
    return bad(where.path("type"), fmt::format("'{}' has no type", where.path()));
  const auto type = json_string(type_text);
  if (!type) return bad_kind(where.path("type"), "a string", type_text);
  if (*type == "text") {
    if (json_kind(text) != JsonKind::string) return bad_kind(where.path("text"), "a string", text);
    return true;
  }
  if (names_remote_media(part)) view.has_remote_media = true;
  if (*type == "image_url") {
    view.has_images = true;
  } else if (*type == "input_audio") {
    view.has_audio = true;
  } else if (*type == "file" || *type == "input_video" || *type == "video_url") {
    view.has_other_media = true;
  } else if (*type != "refusal") {
    return bad(where.path("type"),
               fmt::format(
                   "'{}' is '{}', which is not known; known are text, image_url, input_audio, "
                   "file, video_url, input_video and refusal",
                   where.path("type"), printable(type->substr(0, 64))));
  }
  return false;
}

Status check_content(std::string_view content, Where where, ChatRequestView& view) {
  const JsonKind kind = json_kind(content);
  if (content.empty() || kind == JsonKind::string) return {};
  if (kind != JsonKind::array)
    return bad_kind(where.path("content"), "a string, a list of parts or null", content);
  bool only_text = true;
  std::size_t count = 0;
  JsonArrayCursor parts(content);
  while (const auto part = parts.next()) {
    where.part = count++;
    const auto is_text = check_part(*part, where, view);
    if (!is_text) return fail(is_text.error());
    only_text = only_text && *is_text;
  }
  view.has_text_lists = view.has_text_lists || (only_text && count > 0);
  return {};
}

Status check_message(std::string_view message, const Where& where, ChatRequestView& view) {
  if (json_kind(message) != JsonKind::object) return bad_kind(where.path(), "an object", message);
  constexpr std::array<std::string_view, 3> kMembers = {"role", "content", "tool_calls"};
  const auto path_of = [&where](std::string_view name) { return where.path(name); };
  const auto found = pick(message, kMembers, path_of);
  if (!found) return fail(found.error());
  const auto& [role_text, content, calls] = found->values;
  if (role_text.empty())
    return bad(where.path("role"), fmt::format("'{}' has no role", where.path()));
  const auto role = json_string(role_text);
  if (!role) return bad_kind(where.path("role"), "a string", role_text);
  if (std::ranges::find(kRoles, *role) == kRoles.end()) {
    return bad(where.path("role"), fmt::format("'{}' is '{}', which is not known; known are {}",
                                               where.path("role"), printable(role->substr(0, 64)),
                                               fmt::join(kRoles, ", ")));
  }
  if (!calls.empty()) {
    if (json_kind(calls) != JsonKind::array)
      return bad_kind(where.path("tool_calls"), "an array", calls);
    JsonArrayCursor each(calls);
    while (const auto call = each.next()) {
      if (has_nulls(*call)) view.messages_need_edits = true;
    }
  }
  const auto& [role_given, content_given, calls_given] = found->given;
  const bool has_nulls_to_drop = found->other_nulls || (calls_given && calls.empty());
  if (has_nulls_to_drop || (calls.empty() && !content_given)) view.messages_need_edits = true;
  return check_content(content, where, view);
}

Status check_messages(std::string_view messages, ChatRequestView& view) {
  if (messages.empty()) return bad("messages", "the request has no 'messages'");
  if (json_kind(messages) != JsonKind::array) return bad_kind("messages", "an array", messages);
  JsonArrayCursor each(messages);
  while (const auto message = each.next()) {
    const Status status = check_message(*message, Where{view.message_count++}, view);
    if (!status) return status;
  }
  if (view.message_count == 0) return bad("messages", "'messages' is empty");
  return {};
}

// The members of the top level that Werk reads, by name; null counts as absent.
class TopLevel {
 public:
  TopLevel(std::string_view body, const std::vector<JsonMember>& members)
      : body_(body), members_(members) {}

  std::string_view value(std::string_view key) const {
    for (const JsonMember& member : members_) {
      if (member.key == key && member.kind != JsonKind::null) return member.value.in(body_);
    }
    return {};
  }

  // The value if it is of this kind; an error that names it if it is of another; empty if it is
  // absent.
  Result<std::string_view> value(std::string_view key, JsonKind kind) const {
    const std::string_view text = value(key);
    if (!text.empty() && json_kind(text) != kind)
      return bad_kind(std::string(key), name_of(kind), text);
    return text;
  }

 private:
  std::string_view body_;
  const std::vector<JsonMember>& members_;
};

Status read_numbers(const TopLevel& top, ChatRequestView& view) {
  const auto n = top.value("n", JsonKind::number);
  if (!n) return fail(n.error());
  if (!n->empty()) {
    const auto count = json_unsigned(*n);
    if (!count || *count < 1 || *count > kChoicesMax) {
      return bad("n", fmt::format("'n' must be a whole number from 1 to {}", kChoicesMax));
    }
    view.choices = static_cast<std::uint32_t>(*count);
  }
  for (const std::string_view name : {"max_tokens", "max_completion_tokens"}) {
    const auto text = top.value(name, JsonKind::number);
    if (!text) return fail(text.error());
    if (!text->empty()) view.max_tokens = json_unsigned(*text);
  }
  return {};
}

Status read_stream_members(const TopLevel& top, ChatRequestView& view) {
  const auto stream = top.value("stream", JsonKind::boolean);
  if (!stream) return fail(stream.error());
  view.stream = json_is_true(*stream);
  const auto progress = top.value("return_progress", JsonKind::boolean);
  if (!progress) return fail(progress.error());
  view.return_progress = json_is_true(*progress);
  const auto options = top.value("stream_options", JsonKind::object);
  if (!options) return fail(options.error());
  constexpr std::array<std::string_view, 1> kMembers = {"include_usage"};
  const auto path_of = [](std::string_view name) { return fmt::format("stream_options.{}", name); };
  const auto found = pick(*options, kMembers, path_of);
  if (!found) return fail(found.error());
  const std::string_view usage = found->values.front();
  if (!usage.empty() && json_kind(usage) != JsonKind::boolean) {
    return bad_kind("stream_options.include_usage", "true or false", usage);
  }
  view.include_usage = json_is_true(usage);
  return {};
}

// The function that a `tool_choice` object names; nothing where it names none.
std::optional<std::string> named_function(std::string_view choice) {
  const auto function = find_member(choice, "function");
  const auto name = function ? find_member(*function, "name") : std::nullopt;
  return name ? json_string(*name) : std::nullopt;
}

// The element of `tools` that offers this function.
std::optional<std::string_view> find_tool(std::string_view tools, std::string_view name) {
  JsonArrayCursor elements(tools);
  while (const auto element = elements.next()) {
    if (json_kind(*element) == JsonKind::object && named_function(*element) == name) return element;
  }
  return std::nullopt;
}

Status read_tools(const TopLevel& top, ChatRequestView& view) {
  const auto tools = top.value("tools", JsonKind::array);
  if (!tools) return fail(tools.error());
  view.has_tools = JsonArrayCursor(*tools).next().has_value();
  const std::string_view choice = top.value("tool_choice");
  if (choice.empty()) return {};
  if (json_kind(choice) == JsonKind::object) {
    view.tool_choice = ToolChoice::named;
    const auto name = named_function(choice);
    if (name && !find_tool(*tools, *name)) {
      return bad("tool_choice", "'tool_choice' names the function \"" + *name +
                                    "\", which 'tools' does not offer");
    }
    return {};
  }
  const auto word = json_string(choice);
  if (!word) return bad_kind("tool_choice", "a string or an object", choice);
  if (*word == "auto") {
    view.tool_choice = ToolChoice::automatic;
  } else if (*word == "none") {
    view.tool_choice = ToolChoice::none;
  } else if (*word == "required") {
    view.tool_choice = ToolChoice::required;
  } else {
    return bad("tool_choice",
               "'tool_choice' must be auto, none, required or an object that names a function");
  }
  return {};
}

Status read_members(const TopLevel& top, ChatRequestView& view) {
  const auto model = top.value("model", JsonKind::string);
  if (!model) return fail(model.error());
  if (!model->empty()) {
    view.model = json_string(*model);
    if (view.model->empty()) return bad("model", "'model' is empty");
  }
  if (Status status = read_stream_members(top, view); !status) return status;
  if (Status status = read_numbers(top, view); !status) return status;
  if (Status status = read_tools(top, view); !status) return status;
  const auto format = top.value("response_format", JsonKind::object);
  if (!format) return fail(format.error());
  view.has_response_format =
      !format->empty() && json_string(find_member(*format, "type").value_or("")) != "text";
  return check_messages(top.value("messages"), view);
}

Error about_body(Error error) {
  error.message = "request body: " + error.message;
  return error;
}

// `"one\ntwo"`: the parts' own spelling, with an escaped line feed between them.
std::string join_text_parts(std::string_view parts) {
  std::string joined = "\"";
  bool first = true;
  JsonArrayCursor each(parts);
  while (const auto part = each.next()) {
    if (!std::exchange(first, false)) joined += "\\n";
    joined += json_string_raw(find_member(*part, "text").value_or("")).value_or("");
  }
  joined.push_back('"');
  return joined;
}

bool is_text_list(std::string_view content) {
  if (json_kind(content) != JsonKind::array) return false;
  JsonArrayCursor each(content);
  std::size_t count = 0;
  for (; const auto part = each.next(); ++count) {
    if (json_string(find_member(*part, "type").value_or("")) != "text") return false;
  }
  return count > 0;
}

// Whether the client gave the member itself; null counts as absent.
bool gives(const JsonObjectEditor& top, std::string_view name) {
  const std::string_view given = top.value(name);
  if (!given.empty() && given != "null") return true;
  if (name != "max_tokens") return false;
  return gives(top, "max_completion_tokens") || gives(top, "n_predict");
}

bool is_limit(std::string_view name) {
  return name == "max_tokens" || name == "max_completion_tokens";
}

std::string_view limit_name(std::string_view name, const TakenMembers& taken) {
  return is_limit(name) && !taken.output_limit.empty() ? taken.output_limit : name;
}

// Usage, progress and the output limit, each as the engine takes it.
void ask_for_facts(JsonSplice& splice, JsonObjectEditor& top, const TakenMembers& taken) {
  const std::string_view options = top.value("stream_options");
  if (!taken.stream_options) {
    top.remove("stream_options");
  } else if (json_kind(options) == JsonKind::object) {
    JsonObjectEditor editor(splice, options);
    editor.set("include_usage", "true");
    editor.remove_nulls();
    editor.commit();
  } else {
    top.set("stream_options", R"({"include_usage":true})");
  }
  if (taken.progress) {
    top.set("return_progress", "true");
  } else {
    top.remove("return_progress");
  }
  if (taken.output_limit.empty()) return;
  for (const std::string_view name : {"max_tokens", "max_completion_tokens"}) {
    if (name == taken.output_limit) continue;
    // Of two that contradict each other the engine's own name counts.
    const std::string_view own = top.value(taken.output_limit);
    if (!own.empty() && own != "null") {
      top.remove(name);
    } else {
      top.remove(taken.output_limit);
      top.rename(name, taken.output_limit);
    }
  }
}

void edit_message(JsonSplice& splice, std::string_view message, TextParts text_parts) {
  JsonObjectEditor editor(splice, message);
  const auto content = find_member(message, "content");
  const auto calls = find_member(message, "tool_calls");
  const bool has_calls = calls && json_kind(*calls) == JsonKind::array;
  if (!content && !has_calls) editor.set("content", "null");
  if (text_parts == TextParts::join && content && is_text_list(*content)) {
    editor.set("content", join_text_parts(*content));
  }
  editor.remove_nulls("content");
  if (has_calls) {
    JsonArrayCursor each(*calls);
    while (const auto call = each.next()) {
      if (json_kind(*call) != JsonKind::object || !has_nulls(*call)) continue;
      JsonObjectEditor call_editor(splice, *call);
      call_editor.remove_nulls();
      call_editor.commit();
    }
  }
  editor.commit();
}

}  // namespace

ChatRequestReader::ChatRequestReader() : scanner_(JsonScanLimits{}, kReadOrEdited) {}

Status ChatRequestReader::feed(std::string_view piece) {
  Status status = scanner_.feed(piece);
  if (!status) return fail(about_body(std::move(status.error())));
  return {};
}

Result<ChatRequestView> ChatRequestReader::finish(std::string_view body) {
  if (Status status = scanner_.finish(); !status)
    return fail(about_body(std::move(status.error())));
  if (scanner_.root() != JsonKind::object) {
    return bad({}, fmt::format("the request body is {} where a JSON object was expected",
                               name_of(scanner_.root())));
  }
  ChatRequestView view;
  view.object = range_in(body, trim_json(body));
  if (Status status = read_members(TopLevel(body, scanner_.members()), view); !status)
    return pass_on(status);
  return view;
}

Result<ChatRequestView> read_chat_request(std::string_view body) {
  ChatRequestReader reader;
  if (Status status = reader.feed(body); !status) return pass_on(status);
  return reader.finish(body);
}

std::string rewrite_chat_request(std::string_view body, const ChatRequestView& view,
                                 const EngineEdits& edits) {
  JsonSplice splice(body);
  JsonObjectEditor top(splice, view.object.in(body));
  top.set("model", to_json_string(edits.engine_model));
  top.set("stream", "true");
  ask_for_facts(splice, top, edits.taken);
  for (const auto& [name, json] : edits.defaults) {
    if (!gives(top, name)) top.set(limit_name(name, edits.taken), json);
  }
  if (view.tool_choice == ToolChoice::named && edits.named_tool == NamedTool::as_only_tool) {
    const auto name = named_function(top.value("tool_choice"));
    const auto tool = name ? find_tool(top.value("tools"), *name) : std::nullopt;
    if (tool) {
      top.set("tools", "[" + std::string(*tool) + "]");
      top.set("tool_choice", "\"required\"");
    }
  }
  top.remove("id_slot");
  top.remove("n_cmpl");
  top.remove_nulls();
  const bool joins = view.has_text_lists && edits.text_parts == TextParts::join;
  if (view.messages_need_edits || joins) {
    JsonArrayCursor messages(top.value("messages"));
    while (const auto message = messages.next()) edit_message(splice, *message, edits.text_parts);
  }
  top.commit();
  return splice.apply();
}

}  // namespace werk::gateway
