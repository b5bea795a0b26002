#include "bench/support/main.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <exception>

namespace werk::bench {

bool Goals::has(std::string_view goal) const {
  return names_.empty() || std::ranges::find(names_, goal) != names_.end();
}

int run_main(std::string_view program, int count, char** words,
             const std::function<void(const Goals&)>& measure) {
  try {
    measure(Goals(std::vector<std::string>(words + 1, words + count)));
    return 0;
  } catch (const std::exception& error) {
    fmt::print(stderr, "{}: {}\n", program, error.what());
    return 1;
  }
}

}  // namespace werk::bench
