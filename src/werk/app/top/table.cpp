#include "werk/app/top/table.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "werk/app/top/figures.hpp"
#include "werk/base/text.hpp"

namespace werk::app::top {
namespace {

constexpr Align kRight = Align::right;
constexpr Align kLeft = Align::left;

constexpr std::array kRuntimeColumns = {
    Column{"MODEL", 'N', 0, kLeft, 0, Order::rising},
    Column{"ENGINE", 'E', 12, kLeft, 74, Order::rising},
    Column{"STATE", 'S', 8, kLeft, 0, Order::rising},
    Column{"SLOTS", 'L', 7, kRight, 36, Order::falling},
    Column{"WAIT", 'W', 4, kRight, 40, Order::falling},
    Column{"TOK/S", 'T', 6, kRight, 48, Order::falling},
    Column{"CACHED", 'C', 6, kRight, 56, Order::falling},
    Column{"MEMORY", 'M', 8, kRight, 64, Order::falling},
    Column{"PIN", 'P', 3, kLeft, 44, Order::falling},
    Column{"SINCE", 'A', 6, kRight, 100, Order::falling},
    Column{"CALLS", 'K', 6, kRight, 100, Order::falling},
    Column{"LOAD", 'D', 6, kRight, 110, Order::falling},
    Column{"PID", 'I', 7, kRight, 110, Order::rising},
};
constexpr std::size_t kRateOfRuntime = 5;

constexpr std::size_t kIdColumns = 16;
constexpr std::array kCallColumns = {
    Column{"MODEL", 'N', 0, kLeft, 0, Order::rising},
    Column{"CLIENT", 'I', 15, kLeft, 74, Order::rising},
    Column{"PHASE", 'S', 10, kLeft, 0, Order::rising},
    Column{"AGE", 'A', 6, kRight, 30, Order::falling},
    Column{"PROMPT", 'P', 6, kRight, 50, Order::falling},
    Column{"CACHED", 'C', 6, kRight, 58, Order::falling},
    Column{"OUT", 'O', 6, kRight, 38, Order::falling},
    Column{"TOK/S", 'T', 6, kRight, 64, Order::falling},
    Column{"API", 'D', 9, kLeft, 100, Order::rising},
    Column{"ID", 'X', kIdColumns, kLeft, 110, Order::rising},
};
constexpr std::size_t kAgeOfCall = 3;

Cell words(std::string_view text, Style style = Style::normal) {
  const std::string shown = on_one_line(text);
  if (shown.empty()) return {"-", Style::dim, {}};
  return {shown, style, to_lower(shown)};
}

// Ids begin alike: where one doesn't fit its end is shown.
Cell named(std::string_view id) {
  Cell cell = words(id);
  cell.text = ending(cell.text, kIdColumns);
  return cell;
}

Cell figure(std::string text, const Figure& key, Style style = Style::normal) {
  if (!key) return {std::move(text), Style::dim, {}};
  return {std::move(text), style, *key};
}

Figure as_figure(const Count& count) {
  return count ? Figure(static_cast<double>(*count)) : std::nullopt;
}

Cell counted(const Count& count, Style style = Style::normal) {
  return figure(count_text(count), as_figure(count), style);
}

// ---- runtimes

Style style_of_state(std::string_view state) {
  if (state == "ready") return Style::good;
  return state.empty() ? Style::dim : Style::warning;
}

Cell slots_of(const Runtime& runtime) {
  if (!runtime.slots_busy) return figure("-", std::nullopt);
  const std::string total = runtime.slots_total ? count_text(runtime.slots_total) : "-";
  return figure(fmt::format("{}/{}", count_text(runtime.slots_busy), total),
                as_figure(runtime.slots_busy));
}

void mention(Line& line, std::string_view name, const std::string& value,
             Style style = Style::strong) {
  if (value.empty() || value == "-") return;
  line.push_back({fmt::format("{}{} ", line.empty() ? "" : "  ", name), Style::normal});
  line.push_back({on_one_line(value), style});
}

Line about(const Runtime& runtime) {
  Line line;
  mention(line, "last error", runtime.last_error, Style::bad);
  mention(line, "start", runtime.progress, Style::warning);
  mention(line, "pid", runtime.pid ? fmt::to_string(*runtime.pid) : "");
  mention(line, "calls", count_text(runtime.calls));
  mention(line, "tokens out", count_text(runtime.tokens.output));
  mention(line, "loaded in", age_text(runtime.load_seconds));
  if (runtime.idle_timeout_s && *runtime.idle_timeout_s > 0)
    mention(line, "idle limit", age_text(runtime.idle_timeout_s));
  mention(line, "engine", runtime.ownership);
  mention(line, "pool", runtime.pool);
  mention(line, "key", runtime.key);
  return line;
}

Row row_of(const Runtime& runtime) {
  Row row;
  row.id = runtime.key;
  row.model = runtime.model;
  const bool waits = runtime.waiting.value_or(0) > 0;
  row.cells = {
      words(runtime.model),
      words(runtime.engine),
      words(runtime.state, style_of_state(runtime.state)),
      slots_of(runtime),
      counted(runtime.waiting, waits ? Style::warning : Style::normal),
      figure(rate_text(runtime.output_tokens_per_second), runtime.output_tokens_per_second,
             Style::strong),
      figure(share_text(cached_share(runtime.tokens)), cached_share(runtime.tokens)),
      figure(bytes_text(runtime.memory_bytes), as_figure(runtime.memory_bytes)),
      {runtime.pinned ? "yes" : "", Style::normal, runtime.pinned ? 1.0 : 0.0},
      figure(age_text(runtime.age_s), runtime.age_s),
      counted(runtime.calls),
      figure(age_text(runtime.load_seconds), runtime.load_seconds),
      figure(runtime.pid ? fmt::to_string(*runtime.pid) : "-", as_figure(runtime.pid)),
  };
  // A start has no rates yet, but a way to go.
  if (runtime.state == "starting" && !runtime.progress.empty()) {
    row.note = on_one_line(runtime.progress);
    row.note_from = kRateOfRuntime;
  }
  return row;
}

// ---- calls

Style style_of_phase(std::string_view phase) {
  if (phase == "generating") return Style::good;
  return phase == "place" || phase == "slot" || phase == "loading" ? Style::warning : Style::normal;
}

Line about(const ActiveCall& call) {
  Line line;
  mention(line, "call", call.id);
  mention(line, "so far", age_text(call.phase_s));
  mention(line, "route", call.route);
  if (call.stream) mention(line, "answer", *call.stream ? "streamed" : "whole");
  mention(line, "client", call.client);
  mention(line, "runtime", call.runtime);
  return line;
}

Row row_of(const ActiveCall& call) {
  Row row;
  row.id = call.id;
  row.model = call.model;
  row.cells = {
      words(call.model),
      words(call.client),
      words(call.phase, style_of_phase(call.phase)),
      figure(age_text(call.age_s), call.age_s),
      counted(call.tokens.prompt),
      figure(share_text(cached_share(call.tokens)), cached_share(call.tokens)),
      counted(call.tokens.output),
      figure(rate_text(tokens_per_second(call)), tokens_per_second(call), Style::strong),
      words(call.dialect),
      named(call.id),
  };
  return row;
}

bool went_wrong(const EndedCall& call) { return call.status && *call.status >= 400; }

Line about(const EndedCall& call) {
  Line line;
  mention(line, "call", call.id);
  mention(line, "status", count_text(call.status), went_wrong(call) ? Style::bad : Style::strong);
  mention(line, "cause", call.cause, Style::bad);
  mention(line, "loaded", age_text(call.load_s));
  mention(line, "waited", age_text(call.wait_s));
  mention(line, "first byte", age_text(call.first_byte_s));
  mention(line, "total", age_text(call.total_s));
  mention(line, "route", call.route);
  mention(line, "ended", call.ended_at);
  return line;
}

Row row_of(const EndedCall& call) {
  Row row;
  row.id = call.id;
  row.model = call.model;
  row.part = Part::ended;
  row.cells = {
      words(call.model),
      words(""),
      words(call.outcome, went_wrong(call) ? Style::bad : Style::dim),
      figure(age_text(call.total_s), call.total_s),
      counted(call.tokens.prompt),
      figure(share_text(cached_share(call.tokens)), cached_share(call.tokens)),
      counted(call.tokens.output),
      figure(rate_text(tokens_per_second(call)), tokens_per_second(call)),
      words(call.dialect),
      named(call.id),
  };
  for (Cell& cell : row.cells) {
    if (cell.style != Style::bad) cell.style = Style::dim;
  }
  return row;
}

bool holds(const Row& row, const std::string& wanted) {
  return std::ranges::any_of(row.cells, [&](const Cell& cell) {
    const auto* text = std::get_if<std::string>(&cell.key);
    return text != nullptr && text->find(wanted) != std::string::npos;
  });
}

// Whether a stands before b.
bool precedes(const Row& a, const Row& b, std::size_t column, Order order) {
  if (a.part != b.part) return a.part < b.part;
  if (a.part == Part::ended) return false;
  const SortKey& of_a = a.cells[column].key;
  const SortKey& of_b = b.cells[column].key;
  const bool a_known = of_a.index() != 0;
  const bool b_known = of_b.index() != 0;
  if (!a_known || !b_known) return a_known && !b_known;
  return order == Order::rising ? of_a < of_b : of_b < of_a;
}

}  // namespace

std::span<const Column> columns_of(Pane pane) {
  if (pane == Pane::runtimes) return kRuntimeColumns;
  return kCallColumns;
}

std::size_t first_sort(Pane pane) { return pane == Pane::runtimes ? kModelColumn : kAgeOfCall; }

std::vector<Row> rows_of(const State& state, Pane pane) {
  std::vector<Row> rows;
  if (pane == Pane::runtimes) {
    for (const Runtime& runtime : state.runtimes) rows.push_back(row_of(runtime));
    return rows;
  }
  for (const ActiveCall& call : state.calls) rows.push_back(row_of(call));
  for (const EndedCall& call : state.recent) rows.push_back(row_of(call));
  return rows;
}

Line about(const State& state, Pane pane, const Row& row) {
  if (pane == Pane::runtimes) {
    const auto runtime = std::ranges::find(state.runtimes, row.id, &Runtime::key);
    return runtime == state.runtimes.end() ? Line() : about(*runtime);
  }
  if (row.part == Part::active) {
    const auto call = std::ranges::find(state.calls, row.id, &ActiveCall::id);
    return call == state.calls.end() ? Line() : about(*call);
  }
  const auto call = std::ranges::find(state.recent, row.id, &EndedCall::id);
  return call == state.recent.end() ? Line() : about(*call);
}

std::vector<Row> arranged(std::vector<Row> rows, std::string_view filter, std::size_t column,
                          Order order) {
  const std::string wanted = to_lower(filter);
  if (!wanted.empty()) std::erase_if(rows, [&](const Row& row) { return !holds(row, wanted); });
  std::ranges::stable_sort(
      rows, [&](const Row& a, const Row& b) { return precedes(a, b, column, order); });
  return rows;
}

}  // namespace werk::app::top
