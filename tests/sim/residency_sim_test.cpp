// The residency rules, explored. One line per configuration says how many states were seen.
// Reproduce a random walk with WERK_SIM_SEED=<seed>.
#include <gtest/gtest.h>

#include <cstdlib>
#include <iostream>
#include <random>

#include "tests/sim/planted_fault.hpp"
#include "tests/sim/residency_explore.hpp"

namespace werk::test {
namespace {

using runtime::WhenFull;

// The sanitizers make this some ten times slower: their build sees the smaller part, the release
// build all of it.
#ifdef __SANITIZE_ADDRESS__
constexpr std::size_t kRandomSteps = 50'000;
const std::vector<WorldShape> kShapes = {
    {2, 2, 1}, {2, 3, 1}, {3, 2, 2}, {.keys = 2, .callers = 2, .capacity = 1, .acts = 2}};
#else
constexpr std::size_t kRandomSteps = 500'000;
const std::vector<WorldShape> kShapes = {{2, 2, 1},
                                         {2, 3, 1},
                                         {2, 4, 1},
                                         {3, 2, 2},
                                         {3, 3, 1},
                                         {3, 3, 2},
                                         {.keys = 2, .callers = 2, .capacity = 1, .acts = 3},
                                         {.keys = 2, .callers = 3, .capacity = 1, .acts = 2},
                                         {.keys = 2, .callers = 2, .capacity = 2, .acts = 2},
                                         {.keys = 3, .callers = 2, .capacity = 2, .acts = 1}};
#endif

class ResidencySimulation : public ::testing::Test {
 protected:
  void TearDown() override { planted_fault = Fault::none; }
};

TEST_F(ResidencySimulation, EveryInterleavingOfSmallConfigurationsIsSafeAndLive) {
  for (WorldShape shape : kShapes) {
    for (const WhenFull when_full : {WhenFull::wait, WhenFull::refuse}) {
      shape.when_full = when_full;
      const Exploration seen = explore(shape);
      std::cout << shape.text() << ": " << seen.states << " states, " << seen.steps << " steps\n";
      EXPECT_FALSE(seen.broken) << shape.text() << ": " << *seen.broken;
      EXPECT_GT(seen.states, 50u);
    }
  }
}

TEST_F(ResidencySimulation, AMillionRandomStepsThroughLargeConfigurationsBreakNoPromise) {
  const char* given = std::getenv("WERK_SIM_SEED");
  const std::uint64_t seed =
      given != nullptr ? std::strtoull(given, nullptr, 10) : std::random_device{}();
  std::cout << "seed " << seed << "\n";
  for (const WhenFull when_full : {WhenFull::wait, WhenFull::refuse}) {
    const Exploration seen = walk({9, 24, 4, when_full, kRandomSteps}, seed, kRandomSteps);
    EXPECT_FALSE(seen.broken) << *seen.broken;
  }
}

TEST_F(ResidencySimulation, EveryPlantedFaultIsCaught) {
  for (const NamedFault& named : kFaults) {
    planted_fault = named.fault;
    Exploration seen = explore({2, 3, 1});
    if (!seen.broken) seen = explore({.keys = 2, .callers = 2, .capacity = 1, .acts = 2});
    if (!seen.broken) seen = explore({3, 3, 2});
    EXPECT_TRUE(seen.broken) << "not caught: " << named.name;
    if (seen.broken)
      std::cout << named.name << ": " << seen.broken->substr(0, seen.broken->find('\n')) << "\n";
  }
}

}  // namespace
}  // namespace werk::test
