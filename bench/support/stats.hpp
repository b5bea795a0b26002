// From samples to what is reported: percentiles of one slice, and the median and range of per-pair
// ratios under the rules of the benchmark (a discarded warm-up pair, at least seven pairs, pairs
// dropped whose direct side was over twice its own best). Plain functions and values.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

namespace werk::bench {

// `share` in 0..1. Reorders the samples. 0 without any.
double percentile(std::vector<double>& samples, double share);
double median(std::vector<double> samples);

// One figure of one round, beside the time of the same round's direct side that decides whether
// the round counts (any unit; smaller is better).
struct Round {
  double value = 0;
  double direct_cost = 0;
};

struct Summary {
  double median = 0;
  double low = 0;
  double high = 0;
  std::size_t pairs = 0;
  std::size_t dropped = 0;
};
Summary summarize(const std::vector<Round>& rounds);

// Calls the sides in turn: 0 1 2, 2 1 0, 0 1 2, ... `rounds` times after one discarded round; `end`
// is called behind each round that counts.
void alternate(std::size_t rounds, const std::vector<std::function<void()>>& sides,
               const std::function<void()>& end);

}  // namespace werk::bench
