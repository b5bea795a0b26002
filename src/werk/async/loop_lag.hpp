// LoopLag: how late the loop comes to its work. A timer twice a second, on the clock it is given;
// how late that fires is the lag, and the worst of the last ten seconds is what people read, since
// a look now and then would miss a stall. A timer that is overdue while somebody looks counts, too.
// Owned by the app; loop thread only.
#pragma once

#include <array>
#include <memory>

#include "werk/async/clock.hpp"

namespace werk::async {

class LoopLag {
 public:
  static constexpr Duration kEvery = std::chrono::milliseconds(500);
  static constexpr Duration kWindow = std::chrono::seconds(10);

  explicit LoopLag(Clock& clock) : clock_(clock) { arm(); }
  LoopLag(const LoopLag&) = delete;
  LoopLag& operator=(const LoopLag&) = delete;

  // The highest lag in the last ten seconds.
  Duration worst() const;

 private:
  struct Sample {
    TimePoint at{};
    Duration lag{};
  };

  void arm();
  void fired();

  Clock& clock_;
  TimePoint due_{};
  std::array<Sample, kWindow / kEvery> samples_{};
  std::size_t next_ = 0;
  std::unique_ptr<Timer> timer_;
};

}  // namespace werk::async
