// Where every benchmark begins and ends: the words of its command line name goals, and what goes
// wrong is one line on standard error and status 1. Used once by each program. Single thread.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace werk::bench {

// The goals that were named; without one, all of them.
class Goals {
 public:
  explicit Goals(std::vector<std::string> names) : names_(std::move(names)) {}
  bool has(std::string_view goal) const;

 private:
  std::vector<std::string> names_;
};

int run_main(std::string_view program, int count, char** words,
             const std::function<void(const Goals&)>& measure);

}  // namespace werk::bench
