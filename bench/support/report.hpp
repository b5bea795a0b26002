// What a benchmark found, one JSON object a line on standard output; `bench/run` makes the page of
// them. Progress for a person goes to standard error. Plain functions.
#pragma once

#include <fmt/format.h>

#include <string>

#include "bench/support/stats.hpp"

namespace werk::bench {

enum class Better : std::uint8_t { higher, lower, equal, none };  // none: only reported

struct Figure {
  std::string goal;  // P1, ...
  std::string name;
  std::string unit;  // empty: a ratio
  Summary summary;
  Better better = Better::none;
  double bar = 0;
  double moonshot = 0;  // 0: none
  std::string note;     // what stands behind it
  // With fewer pairs a figure says so. Times want seven; what is counted is steady.
  std::size_t pairs_wanted = 7;
};

void report(const Figure& figure);
// A count or another single number.
Summary single(double value);
// Tells a person and the page what was not measured, and why.
void report_left_out(const std::string& text);
void say(const std::string& text);

}  // namespace werk::bench
