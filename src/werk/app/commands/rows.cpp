#include "werk/app/commands/rows.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace werk::app {
namespace {

constexpr std::size_t kColumns = 80;
constexpr std::string_view kGap = "  ";

// How much of the text stands on one line: up to a line feed, else to the last blank that fits. A
// word is never broken, so that paths can be copied.
std::size_t line_end(std::string_view text, std::size_t room) {
  const std::size_t feed = std::min(text.find('\n'), text.size());
  if (feed <= room) return feed;
  const std::size_t blank = text.rfind(' ', room);
  if (blank != std::string_view::npos && blank > 0) return blank;
  return std::min(feed, text.find(' ', 1));
}

}  // namespace

void append_row(std::string& out, const RowWidths& widths, std::string_view name, std::string value,
                std::string_view note) {
  const std::size_t before = widths.indent + widths.name + kGap.size();
  const std::size_t room = kColumns > before + widths.value ? kColumns - before : widths.value;
  std::string head = fmt::format("{:{}}{:<{}}{}", "", widths.indent, name, widths.name, kGap);
  bool last = false;
  while (!last) {
    const std::size_t end = line_end(value, room);
    const std::string piece = value.substr(0, end);
    const bool skips = end < value.size() && (value[end] == '\n' || value[end] == ' ');
    value.erase(0, end + (skips ? 1 : 0));
    last = value.empty();
    const std::size_t width = std::max(piece.size(), widths.value);
    const bool beside = last && !note.empty() && width + kGap.size() + note.size() <= room;
    out += beside ? fmt::format("{}{:<{}}{}{}\n", head, piece, widths.value, kGap, note)
                  : fmt::format("{}{}\n", head, piece);
    head.assign(before, ' ');
    if (last && !beside && !note.empty()) {
      const bool in_column = widths.value + kGap.size() + note.size() <= room;
      const std::size_t column = before + kGap.size() + (in_column ? widths.value : 0);
      out += fmt::format("{:{}}{}\n", "", column, note);
    }
  }
}

}  // namespace werk::app
