#include "werk/gateway/messages_content.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>

#include "werk/base/json_cursor.hpp"
#include "werk/base/text.hpp"
#include "werk/gateway/object_reader.hpp"

namespace werk::gateway {
namespace {

// What the model is told in place of what a tool brought.
constexpr std::string_view kUnreadable = "[content of a kind that can't be read here]";

using Parts = std::vector<chat::Part>;

// What the original's servers made, or what only they can use: meaningless to a local engine.
constexpr std::array<std::string_view, 6> kServerBlocks = {"redacted_thinking", "server_tool_use",
                                                           "mcp_tool_use",      "mcp_tool_result",
                                                           "container_upload",  "fallback"};

bool is_server_block(std::string_view type) {
  constexpr std::string_view kResult = "_tool_result";
  return type.ends_with(kResult) || std::ranges::find(kServerBlocks, type) != kServerBlocks.end();
}

void add_text(Parts& parts, std::string text) {
  if (!text.empty()) parts.emplace_back(chat::Text{std::move(text)});
}

int base64_value(char c) {
  if (c >= 'A' && c <= 'Z') return c - 'A';
  if (c >= 'a' && c <= 'z') return c - 'a' + 26;
  if (c >= '0' && c <= '9') return c - '0' + 52;
  return c == '+' ? 62 : c == '/' ? 63 : -1;
}

// Whether the text is base64 in the standard alphabet, padded or not.
bool is_base64(std::string_view text) {
  const std::size_t end = std::min(text.find('='), text.size());
  const std::size_t padding = text.size() - end;
  const bool fits = padding == 0 ? end % 4 != 1 : padding <= 2 && text.size() % 4 == 0;
  return fits && text.substr(end).find_first_not_of('=') == std::string_view::npos &&
         std::ranges::all_of(text.substr(0, end), [](char c) { return base64_value(c) >= 0; });
}

std::string decode_base64(std::string_view text) {
  std::string out;
  out.reserve(text.size() / 4 * 3 + 3);
  std::uint32_t bits = 0;
  int count = 0;
  for (const char c : text) {
    const int value = base64_value(c);
    if (value < 0) break;
    bits = bits << 6 | static_cast<std::uint32_t>(value);
    count += 6;
    if (count < 8) continue;
    count -= 8;
    out.push_back(static_cast<char>(bits >> count & 0xFFu));
  }
  return out;
}

Result<std::string> base64_data(const ObjectReader& source) {
  auto data = source.required_string("data");
  if (!data) return pass_on(data);
  if (data->empty() || !is_base64(*data))
    return bad_member(source.path("data"), fmt::format("'{}' is not base64", source.path("data")));
  return data;
}

Status read_image(const ObjectReader& block, Parts& parts) {
  auto source = ObjectReader::open(block.value("source"), block.path("source"),
                                   {"type", "media_type", "data"});
  if (!source) return pass_on(source);
  auto type = source->required_string("type");
  if (!type) return pass_on(type);
  if (*type != "base64") {
    return unsupported_member(
        source->path("type"),
        fmt::format("images must be sent as base64, since the node fetches nothing; '{}' is {}",
                    source->path("type"), quoted_word(*type)));
  }
  auto media_type = source->required_string("media_type");
  if (!media_type) return pass_on(media_type);
  constexpr std::array<std::string_view, 4> kKnown = {"image/png", "image/jpeg", "image/gif",
                                                      "image/webp"};
  if (std::ranges::find(kKnown, *media_type) == kKnown.end()) {
    return bad_member(source->path("media_type"),
                      fmt::format("'{}' is {}; known are {}", source->path("media_type"),
                                  quoted_word(*media_type), fmt::join(kKnown, ", ")));
  }
  auto data = base64_data(*source);
  if (!data) return pass_on(data);
  parts.emplace_back(chat::Image{std::move(*media_type), std::move(*data)});
  return {};
}

// The text of a document given as base64.
Result<std::string> decoded_document(const ObjectReader& source) {
  auto media_type = source.required_string("media_type");
  if (!media_type) return pass_on(media_type);
  if (!media_type->starts_with("text/")) {
    return unsupported_member(
        source.path("media_type"),
        fmt::format("{} can't be read here; send the document's text instead (source type 'text')",
                    quoted_word(*media_type)));
  }
  auto data = base64_data(source);
  if (!data) return pass_on(data);
  std::string text = decode_base64(*data);
  if (!is_valid_utf8(text)) {
    return bad_member(source.path("data"),
                      fmt::format("'{}' is not UTF-8 text", source.path("data")));
  }
  return text;
}

std::string head_of_document(const std::optional<std::string>& title,
                             const std::optional<std::string>& context) {
  std::string head;
  for (const auto* line : {&title, &context}) {
    if (*line && !(*line)->empty()) head += **line + "\n\n";
  }
  return head;
}

Status read_document(const ObjectReader& block, Parts& parts) {
  auto source = ObjectReader::open(block.value("source"), block.path("source"),
                                   {"type", "media_type", "data", "content"});
  if (!source) return pass_on(source);
  auto type = source->required_string("type");
  if (!type) return pass_on(type);
  auto title = block.string("title");
  if (!title) return pass_on(title);
  auto context = block.string("context");
  if (!context) return pass_on(context);
  std::string head = head_of_document(*title, *context);
  if (*type == "content") {
    add_text(parts, std::move(head));
    return read_messages_content(source->value("content"), source->path("content"),
                                 ContentPlace::document, parts);
  }
  if (*type != "text" && *type != "base64") {
    return unsupported_member(
        source->path("type"),
        fmt::format("documents must be sent as text, since the node fetches nothing; '{}' is {}",
                    source->path("type"), quoted_word(*type)));
  }
  auto text = *type == "text" ? source->required_string("data") : decoded_document(*source);
  if (!text) return pass_on(text);
  add_text(parts, head + *text);
  return {};
}

Status read_search_result(const ObjectReader& block, Parts& parts) {
  auto title = block.string("title");
  if (!title) return pass_on(title);
  auto source = block.string("source");
  if (!source) return pass_on(source);
  add_text(parts, head_of_document(*title, *source));
  return read_messages_content(block.value("content"), block.path("content"),
                               ContentPlace::document, parts);
}

Status read_tool_use(const ObjectReader& block, Parts& parts) {
  auto id = block.required_string("id");
  if (!id) return pass_on(id);
  auto name = block.required_string("name");
  if (!name) return pass_on(name);
  auto input = block.value("input", JsonKind::object);
  if (!input) return pass_on(input);
  parts.emplace_back(chat::ToolCall{std::move(*id), std::move(*name),
                                    input->empty() ? "{}" : std::string(*input)});
  return {};
}

Status read_tool_result(const ObjectReader& block, Parts& parts) {
  auto id = block.required_string("tool_use_id");
  if (!id) return pass_on(id);
  auto is_error = block.boolean("is_error");
  if (!is_error) return pass_on(is_error);
  chat::ToolResult result;
  result.call_id = std::move(*id);
  result.is_error = is_error->value_or(false);
  Parts inner;
  if (const std::string_view content = block.value("content"); !content.empty()) {
    Status status =
        read_messages_content(content, block.path("content"), ContentPlace::tool_result, inner);
    if (!status) return status;
  }
  for (chat::Part& part : inner) {
    if (auto* text = std::get_if<chat::Text>(&part)) result.parts.emplace_back(std::move(*text));
    if (auto* image = std::get_if<chat::Image>(&part)) result.parts.emplace_back(std::move(*image));
  }
  parts.emplace_back(std::move(result));
  return {};
}

// A member that holds text, as a part made of it.
template <class As>
Status read_as(const ObjectReader& block, std::string_view member, Parts& parts) {
  auto text = block.required_string(member);
  if (!text) return pass_on(text);
  if (!text->empty()) parts.emplace_back(As{std::move(*text)});
  return {};
}

Status read_block(std::string_view text, const std::string& where, ContentPlace place,
                  Parts& parts) {
  auto block =
      ObjectReader::open(text, where,
                         {"type", "text", "source", "title", "context", "content", "thinking", "id",
                          "name", "input", "tool_use_id", "is_error", "tool_name"});
  if (!block) return pass_on(block);
  auto type = block->required_string("type");
  if (!type) return pass_on(type);
  if (*type == "text") return read_as<chat::Text>(*block, "text", parts);
  const bool assistant = place == ContentPlace::assistant;
  const bool given = place == ContentPlace::user || place == ContentPlace::tool_result ||
                     place == ContentPlace::document;
  if (given && *type == "image") return read_image(*block, parts);
  if (given && *type == "document") return read_document(*block, parts);
  if (given && *type == "search_result") return read_search_result(*block, parts);
  if (place == ContentPlace::user && *type == "tool_result") return read_tool_result(*block, parts);
  if (place == ContentPlace::tool_result && *type == "tool_reference")
    return read_as<chat::Text>(*block, "tool_name", parts);
  if (assistant && *type == "thinking") return read_as<chat::Reasoning>(*block, "thinking", parts);
  if (assistant && *type == "tool_use") return read_tool_use(*block, parts);
  if (assistant && *type == "compaction") {
    const std::string_view summary = block->value("content");
    return summary.empty() ? Status() : read_as<chat::Text>(*block, "content", parts);
  }
  if (is_server_block(*type)) return {};
  constexpr std::array<std::string_view, 6> kKnown = {"tool_use", "tool_result", "thinking",
                                                      "image",    "document",    "search_result"};
  const bool misplaced = std::ranges::find(kKnown, *type) != kKnown.end();
  if (misplaced) {
    return bad_member(block->path("type"), fmt::format("'{}' can't stand in '{}'", *type, where));
  }
  // An assistant's unknown block was made by another server; nothing that the user said is lost.
  if (assistant) return {};
  return unsupported_member(
      block->path("type"),
      fmt::format("'{}' is {}, which is not known", block->path("type"), quoted_word(*type)));
}

}  // namespace

Status read_messages_content(std::string_view content, const std::string& where, ContentPlace place,
                             Parts& parts) {
  if (const auto text = json_string(content)) {
    add_text(parts, *text);
    return {};
  }
  if (content.empty() || json_kind(content) != JsonKind::array)
    return bad_kind_of(where, "a string or a list of blocks", content);
  std::size_t index = 0;
  JsonArrayCursor blocks(content);
  while (const auto block = blocks.next()) {
    Status status = read_block(*block, element_path(where, index++), place, parts);
    const bool told = !status && place == ContentPlace::tool_result &&
                      status.error().code == ErrorCode::unsupported;
    if (told) {
      parts.emplace_back(chat::Text{std::string(kUnreadable)});
    } else if (!status) {
      return status;
    }
  }
  return {};
}

}  // namespace werk::gateway
