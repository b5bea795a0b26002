#include "werk/model/chat_template.hpp"

#include <string>

#include "werk/base/text.hpp"

namespace werk::model {
namespace {

bool is_name_char(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

// Meets the names and quoted texts inside `{{ }}` and `{% %}`.
class Look {
 public:
  ChatTemplateFacts facts() const {
    return {false, names_tools_, (quotes_system_ || writes_role_) && !refuses_system_};
  }

  void at(std::string_view text) {
    while (true) {
      const std::size_t open = text.find('{');
      if (open == std::string_view::npos || open + 1 >= text.size()) return;
      const char kind = text[open + 1];
      text.remove_prefix(open + 1);
      if (kind == '#') {
        const std::size_t close = text.find("#}");
        if (close == std::string_view::npos) return;
        text.remove_prefix(close + 2);
      } else if (kind == '{' || kind == '%') {
        text.remove_prefix(1);
        text = block(text, kind == '{' ? Block::output : Block::statement);
      }
    }
  }

 private:
  enum class Block { output, statement };

  // Returns what follows the block.
  std::string_view block(std::string_view text, Block kind) {
    const std::string_view end = kind == Block::output ? "}}" : "%}";
    char before = ' ';
    std::string_view previous_name;
    while (!text.empty() && !text.starts_with(end)) {
      const char c = text.front();
      std::size_t length = 1;
      if (c == '\'' || c == '"') {
        length = quoted_length(text);
        quoted(text.substr(0, length), previous_name, kind);
      } else if (is_name_char(c)) {
        while (length < text.size() && is_name_char(text[length])) ++length;
        previous_name = text.substr(0, length);
        if (previous_name == "tools" && before != '.') names_tools_ = true;
        if (previous_name == "role" && kind == Block::output) writes_role_ = true;
      }
      if (c != ' ' && c != '\n') before = c;
      text.remove_prefix(length);
    }
    text.remove_prefix(text.empty() ? 0 : end.size());
    return text;
  }

  static std::size_t quoted_length(std::string_view text) {
    for (std::size_t i = 1; i < text.size(); ++i) {
      if (text[i] == '\\') {
        ++i;
      } else if (text[i] == text[0]) {
        return i + 1;
      }
    }
    return text.size();
  }

  void quoted(std::string_view text, std::string_view previous_name, Block kind) {
    const std::string lower = to_lower(text);
    const auto has = [&](std::string_view part) { return lower.find(part) != std::string::npos; };
    const bool quotes_role = lower == "'role'" || lower == "\"role\"";
    if (quotes_role && kind == Block::output) writes_role_ = true;
    if (!has("system")) return;
    if (previous_name != "raise_exception") {
      quotes_system_ = true;
    } else if (has("not support") || has("unsupported") || has("no system")) {
      refuses_system_ = true;
    }
  }

  bool names_tools_ = false;
  bool quotes_system_ = false;
  bool writes_role_ = false;
  bool refuses_system_ = false;
};

}  // namespace

ChatTemplateFacts look_at_chat_template(std::string_view chat_template,
                                        std::string_view tool_template) {
  Look look;
  look.at(chat_template.empty() ? tool_template : chat_template);
  ChatTemplateFacts facts = look.facts();
  facts.present = !chat_template.empty() || !tool_template.empty();
  facts.tools = facts.tools || !tool_template.empty();
  return facts;
}

}  // namespace werk::model
