#include "bench/support/stats.hpp"

#include <algorithm>

namespace werk::bench {

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

void alternate(std::size_t rounds, const std::vector<std::function<void()>>& sides,
               const std::function<void()>& end) {
  for (std::size_t round = 0; round <= rounds; ++round) {
    for (std::size_t i = 0; i < sides.size(); ++i) {
      sides[round % 2 == 0 ? i : sides.size() - 1 - i]();
    }
    if (round > 0) end();
  }
}

}  // namespace werk::bench
