#include "werk/app/top/steering.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace werk::app::top {
namespace {

constexpr std::size_t kFilterBytesMax = 100;

std::string utf8(char32_t code) {
  const auto byte = [](char32_t bits) {
    return static_cast<char>(static_cast<unsigned char>(bits));
  };
  if (code < 0x80) return {byte(code)};
  if (code < 0x800) return {byte(0xC0 | (code >> 6u)), byte(0x80 | (code & 0x3Fu))};
  if (code < 0x10000)
    return {byte(0xE0 | (code >> 12u)), byte(0x80 | ((code >> 6u) & 0x3Fu)),
            byte(0x80 | (code & 0x3Fu))};
  return {byte(0xF0 | (code >> 18u)), byte(0x80 | ((code >> 12u) & 0x3Fu)),
          byte(0x80 | ((code >> 6u) & 0x3Fu)), byte(0x80 | (code & 0x3Fu))};
}

void erase_last(std::string& text) {
  while (!text.empty()) {
    const auto byte = static_cast<unsigned char>(text.back());
    text.pop_back();
    if ((byte & 0xC0u) != 0x80) return;
  }
}

void move(View& view, const State& state, ActionId where, std::size_t page) {
  PaneView& pane = view.of(view.pane);
  const std::vector<Row> rows = rows_in_view(state, view, view.pane);
  if (rows.empty()) return;
  const std::size_t last = rows.size() - 1;
  const std::size_t now = selected_index(rows, pane);
  const std::size_t step = where == ActionId::up || where == ActionId::down ? 1 : page;
  switch (where) {
    case ActionId::first: pane.index = 0; break;
    case ActionId::last: pane.index = last; break;
    case ActionId::up:
    case ActionId::page_up: pane.index = now - std::min(now, step); break;
    default: pane.index = std::min(last, now + step); break;
  }
  pane.selected = rows[pane.index].id;
}

void sort_by(PaneView& pane, Pane which, std::size_t column) {
  const Column& chosen = columns_of(which)[column];
  const bool again = pane.column == column;
  pane.column = column;
  if (!again) pane.order = chosen.order;
}

void reverse(PaneView& pane) {
  pane.order = pane.order == Order::rising ? Order::falling : Order::rising;
}

void sort_by_letter(View& view, char32_t letter) {
  const auto columns = columns_of(view.pane);
  const auto chosen = std::ranges::find_if(columns, [letter](const Column& column) {
    return static_cast<char32_t>(column.letter) == letter;
  });
  if (chosen == columns.end()) return;
  const auto column = static_cast<std::size_t>(chosen - columns.begin());
  PaneView& pane = view.of(view.pane);
  // The same letter once more turns it round.
  if (pane.column == column) return reverse(pane);
  sort_by(pane, view.pane, column);
}

void sort_beside(View& view, std::size_t step) {
  PaneView& pane = view.of(view.pane);
  const std::size_t count = columns_of(view.pane).size();
  sort_by(pane, view.pane, (pane.column + step) % count);
}

const Runtime* selected_runtime(View& view, const State& state) {
  const std::vector<Row> rows = rows_in_view(state, view, Pane::runtimes);
  if (rows.empty()) return nullptr;
  const std::string& key = rows[selected_index(rows, view.of(Pane::runtimes))].id;
  const auto found = std::ranges::find(state.runtimes, key, &Runtime::key);
  return found == state.runtimes.end() ? nullptr : &*found;
}

std::uint64_t calls_on(const Runtime& runtime) {
  return runtime.slots_busy.value_or(0) + runtime.waiting.value_or(0);
}

Outcome wish(View& view, const State& state, ActionId what) {
  if (view.pane != Pane::runtimes) {
    view.message = "select a loaded model first (Tab)";
    return {};
  }
  const Runtime* runtime = selected_runtime(view, state);
  if (runtime == nullptr) {
    view.message = "nothing is loaded";
    return {};
  }
  Wish wanted;
  wanted.model = runtime->model;
  if (what == ActionId::pin) {
    wanted.what = runtime->pinned ? Wish::What::unpin : Wish::What::pin;
    return {.wish = std::move(wanted)};
  }
  wanted.what = Wish::What::unload;
  const std::uint64_t calls = calls_on(*runtime);
  if (calls == 0) return {.wish = std::move(wanted)};
  view.question =
      fmt::format("{} has {} call{}. Unload it once {} ended? (y/n)", on_one_line(runtime->model),
                  calls, calls == 1 ? "" : "s", calls == 1 ? "it has" : "they have");
  view.asked = std::move(wanted);
  view.mode = Mode::question;
  return {};
}

void close(View& view) {
  // In a table it ends the filter that was kept.
  if (view.mode == Mode::table || view.mode == Mode::filter) view.filter.clear();
  view.mode = Mode::table;
  view.question.clear();
}

void type(View& view, const Action& action) {
  if (action.id == ActionId::erase) {
    erase_last(view.filter);
  } else if (view.filter.size() < kFilterBytesMax) {
    view.filter += utf8(action.character);
  }
}

}  // namespace

View::View() {
  for (const Pane which : {Pane::runtimes, Pane::calls}) {
    of(which).column = first_sort(which);
    of(which).order = columns_of(which)[first_sort(which)].order;
  }
}

std::vector<Row> rows_in_view(const State& state, const View& view, Pane pane) {
  return arranged(rows_of(state, pane), view.filter, view.of(pane).column, view.of(pane).order);
}

std::size_t selected_index(const std::vector<Row>& rows, const PaneView& view) {
  if (rows.empty()) return 0;
  const auto found = std::ranges::find(rows, view.selected, &Row::id);
  if (!view.selected.empty() && found != rows.end())
    return static_cast<std::size_t>(found - rows.begin());
  return std::min(view.index, rows.size() - 1);
}

Outcome act(View& view, const State& state, const Action& action, std::size_t page) {
  if (action.id != ActionId::none) view.message.clear();
  switch (action.id) {
    case ActionId::none: break;
    case ActionId::quit: return {.quits = true};
    case ActionId::redraw: return {.redraws = true};
    case ActionId::help: view.mode = Mode::help; break;
    case ActionId::close: close(view); break;
    case ActionId::up:
    case ActionId::down:
    case ActionId::page_up:
    case ActionId::page_down:
    case ActionId::first:
    case ActionId::last: move(view, state, action.id, page); break;
    case ActionId::other_pane:
      view.pane = view.pane == Pane::runtimes ? Pane::calls : Pane::runtimes;
      break;
    case ActionId::sort_right: sort_beside(view, 1); break;
    case ActionId::sort_left: sort_beside(view, columns_of(view.pane).size() - 1); break;
    case ActionId::sort_by: sort_by_letter(view, action.character); break;
    case ActionId::reverse: reverse(view.of(view.pane)); break;
    case ActionId::filter: view.mode = Mode::filter; break;
    case ActionId::type:
    case ActionId::erase: type(view, action); break;
    case ActionId::accept: view.mode = Mode::table; break;
    case ActionId::pin:
    case ActionId::unload: return wish(view, state, action.id);
    case ActionId::yes: {
      close(view);
      return {.wish = std::move(view.asked)};
    }
  }
  return {};
}

}  // namespace werk::app::top
