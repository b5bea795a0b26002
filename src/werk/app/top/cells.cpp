#include "werk/app/top/cells.hpp"

#include <wchar.h>

#include <algorithm>

#include "werk/base/text.hpp"

namespace werk::app::top {
namespace {

constexpr std::string_view kCut = "~";

struct Glyph {
  std::string_view bytes;
  char32_t code = 0;
};

// The first character of a valid, non-empty text.
Glyph first_of(std::string_view text) {
  const auto lead = static_cast<unsigned char>(text[0]);
  std::size_t length = 1;
  char32_t code = lead;
  if (lead >= 0xF0) {
    length = 4;
    code = lead & 0x07u;
  } else if (lead >= 0xE0) {
    length = 3;
    code = lead & 0x0Fu;
  } else if (lead >= 0xC0) {
    length = 2;
    code = lead & 0x1Fu;
  }
  length = std::min(length, text.size());
  for (std::size_t i = 1; i < length; ++i)
    code = (code << 6u) | (static_cast<unsigned char>(text[i]) & 0x3Fu);
  return {text.substr(0, length), code};
}

int columns_of(char32_t code) { return ::wcwidth(static_cast<wchar_t>(code)); }

bool turns_direction(char32_t code) {
  return code == 0x200E || code == 0x200F || (code >= 0x202A && code <= 0x202E) ||
         (code >= 0x2066 && code <= 0x2069);
}

// The longest beginning that fits, with the marks that belong to its last character.
std::string_view beginning(std::string_view text, std::size_t columns) {
  std::size_t bytes = 0;
  std::size_t width = 0;
  while (bytes < text.size()) {
    const Glyph glyph = first_of(text.substr(bytes));
    width += static_cast<std::size_t>(std::max(0, columns_of(glyph.code)));
    if (width > columns) break;
    bytes += glyph.bytes.size();
  }
  return text.substr(0, bytes);
}

}  // namespace

std::string on_one_line(std::string_view text) {
  const std::string valid = printable(text);
  std::string_view rest = valid;
  std::string shown;
  while (!rest.empty()) {
    const Glyph glyph = first_of(rest);
    rest.remove_prefix(glyph.bytes.size());
    if (turns_direction(glyph.code)) continue;
    if (glyph.code == '\n' || glyph.code == '\t') {
      shown += ' ';
    } else if (columns_of(glyph.code) < 0) {
      shown += '?';
    } else {
      shown += glyph.bytes;
    }
  }
  return shown;
}

std::size_t display_width(std::string_view text) {
  std::size_t width = 0;
  while (!text.empty()) {
    const Glyph glyph = first_of(text);
    width += static_cast<std::size_t>(std::max(0, columns_of(glyph.code)));
    text.remove_prefix(glyph.bytes.size());
  }
  return width;
}

std::size_t display_width(const Line& line) {
  std::size_t width = 0;
  for (const Span& span : line) width += display_width(span.text);
  return width;
}

std::string fitted(std::string_view text, std::size_t columns, Align align) {
  std::string shown(text);
  if (columns == 0) return {};
  if (display_width(text) > columns) {
    shown = beginning(text, columns - kCut.size());
    shown += kCut;
  }
  const std::string blanks(columns - std::min(columns, display_width(shown)), ' ');
  return align == Align::left ? shown + blanks : blanks + shown;
}

std::string ending(std::string_view text, std::size_t columns) {
  while (display_width(text) > columns) text.remove_prefix(first_of(text).bytes.size());
  return std::string(text);
}

Line clipped(const Line& line, std::size_t columns) {
  Line clipped;
  std::size_t left = columns;
  for (const Span& span : line) {
    const std::string_view fits = beginning(span.text, left);
    if (!fits.empty()) clipped.push_back({std::string(fits), span.style});
    if (fits.size() < span.text.size()) break;
    left -= display_width(fits);
  }
  return clipped;
}

std::string plain_text(const Line& line) {
  std::string text;
  for (const Span& span : line) text += span.text;
  while (text.ends_with(' ')) text.pop_back();
  return text;
}

}  // namespace werk::app::top
