#include "werk/app/top/layout.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "werk/app/top/header.hpp"

namespace werk::app::top {
namespace {

constexpr std::size_t kColumnsMin = 20;
constexpr std::size_t kLinesMin = 6;
constexpr std::size_t kHeadingLines = 2;
constexpr std::size_t kFootLines = 2;   // of the selection, of the keys
constexpr std::size_t kRowsWanted = 4;  // before the header takes more than its first lines
constexpr std::size_t kRecentListed = 10;
constexpr std::size_t kKeyColumns = 17;  // of the help

// ---- one table

// Which columns such a screen has, and how wide each is.
struct Shown {
  std::size_t column;
  std::size_t width;
};

std::vector<Shown> shown_columns(Pane pane, std::size_t columns) {
  std::vector<Shown> shown;
  const auto all = columns_of(pane);
  std::size_t others = 0;
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (all[i].from > columns) continue;
    shown.push_back({i, all[i].width});
    others += all[i].width + (i == 0 ? 0 : 1);
  }
  for (Shown& one : shown) {
    if (one.width == 0) one.width = columns - std::min(columns, others);
  }
  return shown;
}

Line heading(const std::vector<Shown>& shown, Pane pane, const View& view, std::size_t columns) {
  Line line;
  for (const Shown& one : shown) {
    const Column& column = columns_of(pane)[one.column];
    const bool sorts = view.of(pane).column == one.column;
    if (!line.empty()) line.push_back({" ", Style::heading});
    line.push_back(
        {fitted(column.title, one.width, column.align), sorts ? Style::sorted : Style::heading});
  }
  line.push_back(
      {std::string(columns - std::min(columns, display_width(line)), ' '), Style::heading});
  return line;
}

enum class Selected : std::uint8_t { no, yes };

Line row_line(const Row& row, const std::vector<Shown>& shown, Pane pane, std::size_t columns,
              Selected selected) {
  Line line;
  std::size_t used = 0;
  for (const Shown& one : shown) {
    if (!line.empty()) line.push_back({" "});
    used += line.empty() ? 0 : 1;
    if (!row.note.empty() && one.column >= row.note_from) {
      line.push_back({fitted(row.note, columns - std::min(columns, used)), Style::warning});
      break;
    }
    const Cell& cell = row.cells[one.column];
    line.push_back({fitted(cell.text, one.width, columns_of(pane)[one.column].align), cell.style});
    used += one.width;
  }
  if (selected == Selected::no) return line;
  std::string whole;
  for (const Span& span : line) whole += span.text;
  return {{fitted(whole, columns), Style::selected}};
}

// What stands in place of rows.
Line nothing(const State& state, const View& view, Pane pane) {
  if (!view.filter.empty())
    return {{fmt::format("nothing here holds \"{}\"", on_one_line(view.filter)), Style::dim}};
  if (pane == Pane::calls) return {{"no calls", Style::dim}};
  return {{state.pools.empty() && state.runtimes.empty()
               ? "nothing is loaded"
               : "nothing is loaded; the first call for a model loads it",
           Style::dim}};
}

// The first row to show so that the selected one is in the middle, or as near as it can be.
std::size_t first_row(std::size_t count, std::size_t room, std::size_t selected) {
  if (count <= room) return 0;
  const std::size_t above = room / 2;
  return std::min(selected - std::min(selected, above), count - room);
}

struct TablePlace {
  Pane pane;
  std::size_t columns;
  std::size_t room;   // rows
  Selected selected;  // whether a row of it is
};

void add_table(std::vector<Line>& lines, const State& state, const View& view,
               const std::vector<Row>& rows, const TablePlace& place) {
  const std::vector<Shown> shown = shown_columns(place.pane, place.columns);
  lines.push_back(heading(shown, place.pane, view, place.columns));
  const std::size_t end = lines.size() + place.room;
  if (rows.empty() && place.room > 0) lines.push_back(nothing(state, view, place.pane));
  const std::size_t selected = selected_index(rows, view.of(place.pane));
  const std::size_t first = first_row(rows.size(), place.room, selected);
  for (std::size_t i = first; i < rows.size() && lines.size() < end; ++i) {
    lines.push_back(row_line(rows[i], shown, place.pane, place.columns,
                             i == selected ? place.selected : Selected::no));
  }
  lines.resize(end);
}

// ---- the foot

Line hint(std::string_view key, std::string_view about) {
  return {{std::string(key), Style::key}, {fmt::format(" {}  ", about)}};
}

Line keys_line(const View& view, std::size_t columns) {
  Line line;
  const auto add = [&](std::string_view key, std::string_view about) {
    const Line one = hint(key, about);
    if (display_width(line) + display_width(one) > columns) return;
    line.insert(line.end(), one.begin(), one.end());
  };
  add("h", "help");
  add("q", "quit");
  add("/", "filter");
  add("<>", "sort");
  add("r", "reverse");
  add("Tab", view.pane == Pane::runtimes ? "calls" : "models");
  add("p", "pin");
  add("u", "unload");
  return line;
}

Line foot(const View& view, std::size_t columns) {
  if (view.mode == Mode::question) return {{fitted(view.question, columns), Style::warning}};
  if (view.mode == Mode::filter) {
    return {{"filter: ", Style::key}, {on_one_line(view.filter), Style::strong}, {"_"}};
  }
  if (!view.message.empty()) return {{fitted(on_one_line(view.message), columns), Style::warning}};
  Line line = keys_line(view, columns);
  if (!view.filter.empty()) {
    const Line kept = {{fmt::format("filter: {}  ", on_one_line(view.filter)), Style::warning}};
    line.insert(line.begin(), kept.begin(), kept.end());
  }
  return line;
}

Line about_selected(const State& state, const View& view, const std::vector<Row>& rows) {
  if (rows.empty()) return {};
  return about(state, view.pane, rows[selected_index(rows, view.of(view.pane))]);
}

// ---- the help

// Where a line of the text ends: at the last blank that fits.
std::size_t line_end(std::string_view text, std::size_t room) {
  if (text.size() <= room) return text.size();
  const std::size_t blank = text.rfind(' ', room);
  return blank == std::string_view::npos ? text.size() : blank;
}

void add_help(std::vector<Line>& lines, const View& view, std::size_t columns) {
  const std::size_t room = columns - std::min(columns, kKeyColumns);
  for (const KeyHelp& help : key_help()) {
    std::string about(help.about);
    if (help.names_columns == NamesColumns::yes) {
      for (const Column& column : columns_of(view.pane))
        about += fmt::format(" {}={}", column.letter, column.title);
    }
    std::string_view keys = help.keys;
    while (!about.empty()) {
      const std::size_t end = line_end(about, room);
      lines.push_back({{fitted(keys, kKeyColumns), Style::key}, {about.substr(0, end)}});
      about.erase(0, end + 1);
      keys = {};
    }
  }
}

// ---- the whole

struct Rooms {
  std::size_t header;
  std::size_t runtimes;
  std::size_t calls;
};

// Each table has what the other doesn't need, and half where both want more.
Rooms rooms_for(std::size_t lines, std::size_t header_lines, std::size_t runtimes,
                std::size_t calls) {
  const std::size_t fixed = kHeadingLines + kFootLines;
  Rooms rooms{1, 0, 0};
  while (rooms.header < header_lines && lines >= fixed + rooms.header + 1 + 2 * kRowsWanted)
    ++rooms.header;
  const std::size_t rows = lines - std::min(lines, fixed + rooms.header);
  const std::size_t half = rows / 2;
  const std::size_t wanted = std::max<std::size_t>(runtimes, 1);
  rooms.runtimes =
      std::min(wanted, std::max(half, rows - std::min(rows, std::max<std::size_t>(calls, 1))));
  rooms.calls = rows - rooms.runtimes;
  return rooms;
}

void grey(Line& line) {
  for (Span& span : line) {
    if (span.style != Style::selected) span.style = Style::dim;
  }
}

std::vector<Line> too_small(Extent extent) {
  std::vector<Line> lines(extent.lines);
  if (!lines.empty()) lines[0] = clipped({{"too small: q quits"}}, extent.columns);
  return lines;
}

}  // namespace

std::vector<Line> screen(const State& state, const View& view, const Link& link, Extent extent) {
  if (extent.columns < kColumnsMin || extent.lines < kLinesMin) return too_small(extent);
  const std::vector<Row> runtimes = rows_in_view(state, view, Pane::runtimes);
  const std::vector<Row> calls = rows_in_view(state, view, Pane::calls);
  std::vector<Line> lines = header(state, link, extent.columns);
  const Rooms rooms = rooms_for(extent.lines, lines.size(), runtimes.size(), calls.size());
  lines.resize(rooms.header);
  if (view.mode == Mode::help) {
    add_help(lines, view, extent.columns);
  } else {
    const auto selected = [&](Pane pane) {
      return view.pane == pane ? Selected::yes : Selected::no;
    };
    add_table(lines, state, view, runtimes,
              {Pane::runtimes, extent.columns, rooms.runtimes, selected(Pane::runtimes)});
    add_table(lines, state, view, calls,
              {Pane::calls, extent.columns, rooms.calls, selected(Pane::calls)});
  }
  lines.resize(extent.lines - kFootLines);
  if (view.mode == Mode::help) {
    lines.emplace_back();
    lines.push_back({{"any key goes back", Style::key}});
  } else {
    lines.push_back(about_selected(state, view, view.pane == Pane::runtimes ? runtimes : calls));
    lines.push_back(foot(view, extent.columns));
  }
  if (link.condition == Link::Condition::lost) {
    for (std::size_t i = 1; i + 1 < lines.size(); ++i) grey(lines[i]);
  }
  for (Line& line : lines) line = clipped(line, extent.columns);
  return lines;
}

std::vector<Line> listing(const State& state, const View& view, const Link& link,
                          std::size_t columns) {
  std::vector<Line> lines = header(state, link, columns);
  for (const Pane pane : {Pane::runtimes, Pane::calls}) {
    std::vector<Row> rows = rows_in_view(state, view, pane);
    std::size_t recent = 0;
    std::erase_if(
        rows, [&](const Row& row) { return row.part == Part::ended && ++recent > kRecentListed; });
    lines.emplace_back();
    add_table(lines, state, view, rows,
              {pane, columns, std::max<std::size_t>(rows.size(), 1), Selected::no});
  }
  return lines;
}

std::size_t page_of(Extent extent) {
  constexpr std::size_t kAround = 5 + kHeadingLines + kFootLines;
  return std::max<std::size_t>(1, (extent.lines - std::min(extent.lines, kAround)) / 2);
}

}  // namespace werk::app::top
