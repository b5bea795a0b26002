// What a screen of `werk top` is made of: lines of styled text, measured in columns of a terminal
// (a wide character takes two, a combining one none). Widths are the C library's for the current
// locale, which must be a UTF-8 one. Pure values; nothing of what others wrote can steer a
// terminal.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace werk::app::top {

enum class Style : std::uint8_t {
  normal,
  dim,       // of little weight now: what has ended, or an old picture
  strong,    // figures among words
  heading,   // of a table
  sorted,    // the heading that a table is sorted by
  selected,  // the line that keys act on
  good,
  warning,
  bad,
  key,  // a key among its explanations
};

struct Span {
  std::string text;
  Style style = Style::normal;
};

using Line = std::vector<Span>;

enum class Align : std::uint8_t { left, right };

// Fit to be shown on one line: no control characters, no marks that turn the direction of writing.
std::string on_one_line(std::string_view text);

// Of a text that is fit to be shown.
std::size_t display_width(std::string_view text);
std::size_t display_width(const Line& line);

// Exactly so many columns: filled up with blanks, or cut with "~" at its end.
std::string fitted(std::string_view text, std::size_t columns, Align align = Align::left);

// The longest end that fits.
std::string ending(std::string_view text, std::size_t columns);

// At most so many columns of the line.
Line clipped(const Line& line, std::size_t columns);

// Without styles and without blanks at its end.
std::string plain_text(const Line& line);

}  // namespace werk::app::top
