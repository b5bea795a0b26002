// Histogram: how often a value fell into which range, with a sum: what a Prometheus histogram is
// made of. A plain value without locks; its owner is the loop thread. observe() is a search among
// at most sixteen bounds, so that it may stand on the path of every piece of a stream.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

namespace werk::telemetry {

// Upper bounds, rising; what is above the last falls into a range of its own. Static storage.
using Bounds = std::span<const double>;
inline constexpr std::size_t kBoundsMax = 16;

class Histogram {
 public:
  explicit Histogram(Bounds bounds) : bounds_(bounds) {}

  // The value occurred so many times.
  void observe(double value, std::uint64_t times = 1) {
    std::size_t at = 0;
    while (at < bounds_.size() && value > bounds_[at]) ++at;
    counts_[at] += times;
    sum_ += value * static_cast<double>(times);
  }
  // Of equal bounds.
  void add(const Histogram& other) {
    for (std::size_t i = 0; i < counts_.size(); ++i) counts_[i] += other.counts_[i];
    sum_ += other.sum_;
  }

  Bounds bounds() const { return bounds_; }
  // In the range that ends with this bound; behind the last bound, above it.
  std::uint64_t in_range(std::size_t bound) const { return counts_[bound]; }
  double sum() const { return sum_; }

 private:
  Bounds bounds_;
  std::array<std::uint64_t, kBoundsMax + 1> counts_{};
  double sum_ = 0;
};

}  // namespace werk::telemetry
