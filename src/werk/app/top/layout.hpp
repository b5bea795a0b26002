// How a screen of `werk top` looks: what is known of the node and what the person has set, laid out
// as lines for a terminal of a given size. 80x24 shows everything that matters, larger ones more
// columns and rows; smaller ones lose columns, then header lines. Pure; any thread.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "werk/app/top/cells.hpp"
#include "werk/app/top/state.hpp"
#include "werk/app/top/steering.hpp"

namespace werk::app::top {

// How the picture came about.
struct Link {
  enum class Condition : std::uint8_t { connected, lost };
  std::string address;  // the node's
  Condition condition = Condition::connected;
  std::string reason = {};              // of a lost one
  std::chrono::seconds picture_age{0};  // of a lost one: how old what is shown is
};

struct Extent {
  std::size_t columns = 80;
  std::size_t lines = 24;
};

// Exactly `extent.lines` lines, each at most `extent.columns` wide.
std::vector<Line> screen(const State& state, const View& view, const Link& link, Extent extent);

// The same without keys and a selection, as many lines as it takes.
std::vector<Line> listing(const State& state, const View& view, const Link& link,
                          std::size_t columns);

// How many rows a page key moves on such a screen.
std::size_t page_of(Extent extent);

}  // namespace werk::app::top
