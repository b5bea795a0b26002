#include "werk/app/bench/statistics.hpp"

#include <algorithm>

namespace werk::app::bench {

double percentile(std::vector<double>& samples, double share) {
  if (samples.empty()) return 0;
  const auto last = static_cast<double>(samples.size() - 1);
  const auto place = static_cast<std::ptrdiff_t>(share * last + 0.5);
  std::nth_element(samples.begin(), samples.begin() + place, samples.end());
  return samples[static_cast<std::size_t>(place)];
}

double median(std::vector<double> samples) {
  if (samples.empty()) return 0;
  std::sort(samples.begin(), samples.end());
  const std::size_t middle = samples.size() / 2;
  if (samples.size() % 2 == 1) return samples[middle];
  return (samples[middle - 1] + samples[middle]) / 2;
}

std::optional<Percentiles> percentiles_of(std::vector<double> samples) {
  if (samples.empty()) return std::nullopt;
  Percentiles found;
  found.p50 = median(samples);
  found.p90 = percentile(samples, 0.90);
  found.p95 = percentile(samples, 0.95);
  found.p99 = percentile(samples, 0.99);
  return found;
}

Summary summarize(const std::vector<Round>& rounds) {
  Summary summary;
  double best = 0;
  for (const Round& round : rounds) {
    if (best == 0 || round.direct_cost < best) best = round.direct_cost;
  }
  std::vector<double> kept;
  for (const Round& round : rounds) {
    if (round.direct_cost <= 2 * best) kept.push_back(round.value);
  }
  summary.pairs = kept.size();
  summary.dropped = rounds.size() - kept.size();
  if (kept.empty()) return summary;
  summary.median = median(kept);
  summary.low = *std::min_element(kept.begin(), kept.end());
  summary.high = *std::max_element(kept.begin(), kept.end());
  return summary;
}

}  // namespace werk::app::bench
