// Rows of three columns (name, value, note) for a terminal of 80 columns or a pipe: a long value
// goes on below itself, and a note that doesn't fit beside it stands below it. Pure.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace werk::app {

struct RowWidths {
  std::size_t indent = 0;
  std::size_t name = 0;
  std::size_t value = 20;  // where the note begins, if the value is that short
};

// Line feeds in the value are kept.
void append_row(std::string& out, const RowWidths& widths, std::string_view name, std::string value,
                std::string_view note);

}  // namespace werk::app
