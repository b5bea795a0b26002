#include "werk/async/loop_lag.hpp"

#include <algorithm>

namespace werk::async {

Duration LoopLag::worst() const {
  const TimePoint now = clock_.now();
  Duration worst = std::max(now - due_, Duration::zero());
  for (const Sample& sample : samples_) {
    if (now - sample.at <= kWindow) worst = std::max(worst, sample.lag);
  }
  return worst;
}

void LoopLag::arm() {
  due_ = clock_.now() + kEvery;
  timer_ = clock_.call_at(due_, [this] { fired(); });
}

void LoopLag::fired() {
  const TimePoint now = clock_.now();
  samples_[next_++ % samples_.size()] = {now, std::max(now - due_, Duration::zero())};
  arm();
}

}  // namespace werk::async
