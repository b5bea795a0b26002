// The two tables of `werk top`, what is loaded and the calls, as rows: their columns, what each
// cell says and by what it is sorted, which rows a filter leaves. Pure; any thread.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "werk/app/top/cells.hpp"
#include "werk/app/top/state.hpp"

namespace werk::app::top {

enum class Pane : std::uint8_t { runtimes, calls };
enum class Order : std::uint8_t { rising, falling };

struct Column {
  std::string_view title;
  char letter = ' ';            // sorts by it
  std::size_t width = 0;        // 0: takes what the others leave
  Align align = Align::left;    // figures stand at the right
  std::size_t from = 0;         // shown on screens with at least so many columns
  Order order = Order::rising;  // of the first sort
};

// Nothing: not known, and last in either order.
using SortKey = std::variant<std::monostate, double, std::string>;

struct Cell {
  std::string text;
  Style style = Style::normal;
  SortKey key = {};
};

// Which part of the table a row belongs to; parts keep their order under every sort.
enum class Part : std::uint8_t { active, ended };

struct Row {
  std::string id;  // a runtime's key, a call's id: what a selection holds on to
  std::string model;
  Part part = Part::active;
  std::vector<Cell> cells;  // one for each column
  std::string note;         // stands in place of the cells from `note_from` on, if any
  std::size_t note_from = 0;
};

std::span<const Column> columns_of(Pane pane);
inline constexpr std::size_t kModelColumn = 0;
// By which column a pane is sorted at first.
std::size_t first_sort(Pane pane);

std::vector<Row> rows_of(const State& state, Pane pane);

// Everything else that is known of a pane's row, for a line of its own.
Line about(const State& state, Pane pane, const Row& row);

// Those that hold the text in their words, whatever its case, in the order of the column. Ended
// calls stay newest first.
std::vector<Row> arranged(std::vector<Row> rows, std::string_view filter, std::size_t column,
                          Order order);

}  // namespace werk::app::top
