// OutputRate: how many tokens a second a runtime gives now, over the last five seconds. Fed with
// each piece of a stream at no cost worth naming; read when somebody looks. A plain value, owned by
// the runtime's instance; loop thread only.
#pragma once

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <optional>

namespace werk::telemetry {

class OutputRate {
 public:
  using TimePoint = std::chrono::steady_clock::time_point;

  void add(std::uint64_t tokens, TimePoint now) {
    const std::int64_t second = second_of(now);
    Slice& slice = slices_[static_cast<std::size_t>(second) % slices_.size()];
    if (slice.second != second) slice = Slice{second, 0};
    slice.tokens += tokens;
    if (!first_) first_ = now;
  }

  // None: nothing came in this time.
  std::optional<double> per_second(TimePoint now) const {
    const std::int64_t second = second_of(now);
    std::uint64_t tokens = 0;
    for (const Slice& slice : slices_) {
      if (slice.second > second - kWindow) tokens += slice.tokens;
    }
    if (tokens == 0) return std::nullopt;
    // The window holds four whole seconds and what has passed of the fifth; a stream that has just
    // begun is measured from its beginning.
    const auto begun = TimePoint(std::chrono::seconds(second - kWindow + 1));
    const std::chrono::duration<double> covered = now - std::max(begun, *first_);
    return static_cast<double>(tokens) / std::max(covered.count(), kShortest);
  }

 private:
  static constexpr std::int64_t kWindow = 5;
  static constexpr double kShortest = 0.25;
  struct Slice {
    std::int64_t second = -kWindow;
    std::uint64_t tokens = 0;
  };
  static std::int64_t second_of(TimePoint time) {
    return std::chrono::floor<std::chrono::seconds>(time.time_since_epoch()).count();
  }

  std::array<Slice, kWindow> slices_{};
  std::optional<TimePoint> first_;
};

}  // namespace werk::telemetry
