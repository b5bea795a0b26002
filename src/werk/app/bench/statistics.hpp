// From samples to what is reported: percentiles of one run, and the median and range of ratios of
// pairs under one rule (a pair whose reference side took over twice its own best doesn't count).
// Used by `werk bench` and by the project's own benchmarks. Plain functions and values.
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

namespace werk::app::bench {

// `share` in 0..1. Reorders the samples. 0 without any.
double percentile(std::vector<double>& samples, double share);
double median(std::vector<double> samples);

struct Percentiles {
  double p50 = 0;
  double p90 = 0;
  double p95 = 0;
  double p99 = 0;
};
// None without samples: what was never measured is no zero.
std::optional<Percentiles> percentiles_of(std::vector<double> samples);

// One figure of one round, beside the cost of the same round's reference side, which decides
// whether the round counts (any unit; smaller is better).
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

}  // namespace werk::app::bench
