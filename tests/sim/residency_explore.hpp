// Explores a ResidencyWorld: every interleaving of a small one, for safety and (under weak
// fairness) for liveness, or random walks through a large one. Pure;
// the result says what was seen and, if a promise broke, the way there.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "tests/sim/residency_world.hpp"

namespace werk::test {

struct Exploration {
  std::size_t states = 0;
  std::size_t steps = 0;
  std::optional<std::string> broken;  // the promise that broke, and the way there
};

// Every reachable state. Safety is checked in each; then that no fair cycle and no dead end keeps a
// caller waiting for ever.
Exploration explore(const WorldShape& shape);

// `steps` random events from `seed`.
Exploration walk(const WorldShape& shape, std::uint64_t seed, std::size_t steps);

}  // namespace werk::test
