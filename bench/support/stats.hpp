// The order in which the sides of a benchmark are measured, and the names of what is made of their
// samples: the statistics are those of `werk bench`, so that both report by one rule (a discarded
// warm-up pair, at least seven pairs, pairs dropped whose direct side was over twice its own best).
// Plain functions and values.
#pragma once

#include <cstddef>
#include <functional>
#include <vector>

#include "werk/app/bench/statistics.hpp"

namespace werk::bench {

using app::bench::median;
using app::bench::percentile;
using app::bench::Round;
using app::bench::summarize;
using app::bench::Summary;

// Calls the sides in turn: 0 1 2, 2 1 0, 0 1 2, ... `rounds` times after one discarded round; `end`
// is called behind each round that counts.
void alternate(std::size_t rounds, const std::vector<std::function<void()>>& sides,
               const std::function<void()>& end);

}  // namespace werk::bench
