#include "werk/app/engines.hpp"

#include <gtest/gtest.h>

namespace werk::app {
namespace {

void expect_threads(const Settings& settings, std::size_t cores, std::uint32_t spinning,
                    std::uint32_t yielding) {
  const auto threads = threads_each(settings, cores);
  EXPECT_EQ(threads.spinning, spinning);
  EXPECT_EQ(threads.yielding, yielding);
}

TEST(ThreadsEach, WhoYieldsGetsAllCoresAndWhoSpinsHalfOfThem) {
  expect_threads({}, 8, 4, 8);
  expect_threads({}, 3, 1, 3);
  expect_threads({}, 1, 1, 1);
}

TEST(ThreadsEach, ModelsThatMayBeActiveDivideTheCores) {
  Settings settings;
  settings.active_models = 4;
  expect_threads(settings, 8, 2, 2);
  expect_threads(settings, 2, 1, 1);
  settings.max_resident = 1;
  expect_threads(settings, 8, 8, 8);
  settings.active_models.reset();
  expect_threads(settings, 8, 8, 8);
}

}  // namespace
}  // namespace werk::app
