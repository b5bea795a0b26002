// What a person has set on the screen of `werk top` (where the selection is, how tables are sorted,
// what is typed or asked) and how an action changes it. What is to be asked of the node comes back
// as a wish, and nothing here carries it out. Pure; owned by the command's session.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <vector>

#include "werk/app/top/keys.hpp"
#include "werk/app/top/table.hpp"

namespace werk::app::top {

struct Wish {
  enum class What : std::uint8_t { pin, unpin, unload };
  What what = What::pin;
  std::string model;
};

struct PaneView {
  std::size_t column = 0;
  Order order = Order::rising;
  std::string selected;   // the row's id, once somebody has selected one
  std::size_t index = 0;  // where it stands, or stood when it went
};

struct View {
  View();

  Pane pane = Pane::runtimes;
  std::array<PaneView, 2> panes;
  std::string filter;
  Mode mode = Mode::table;
  std::string question;  // of Mode::question
  Wish asked;            // what a yes does
  std::string message;   // what came of the last wish, or why it can't be
  PaneView& of(Pane which) { return panes[static_cast<std::size_t>(which)]; }
  const PaneView& of(Pane which) const { return panes[static_cast<std::size_t>(which)]; }
};

// The rows of a pane as the view has them.
std::vector<Row> rows_in_view(const State& state, const View& view, Pane pane);
// Which of them is selected; 0 where there is none.
std::size_t selected_index(const std::vector<Row>& rows, const PaneView& view);

struct Outcome {
  bool quits = false;
  bool redraws = false;  // from nothing
  std::optional<Wish> wish = std::nullopt;
};

// `page` is how many rows a page key moves.
Outcome act(View& view, const State& state, const Action& action, std::size_t page);

}  // namespace werk::app::top
