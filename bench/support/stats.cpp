#include "bench/support/stats.hpp"

namespace werk::bench {

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
