// Output tokens a second of callers who want a story, streamed: one way to an engine (through a
// node, over the engine's own socket) that a benchmark measures in turn with others. Its
// connections stay. Owned by the benchmark; an answer that fails or is too short throws. Single
// thread.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "bench/support/load.hpp"

namespace werk::bench {

// Who is asked, and for which model.
struct StoryPlace {
  Endpoint endpoint;
  std::string model;
  std::string key = {};
};

struct StoryPlan {
  Dialect dialect = Dialect::openai;
  std::uint64_t tokens = 64;  // of an answer
  std::size_t callers = 1;
  std::uint64_t each = 1;      // answers for each of them in a slice
  std::string_view more = {};  // further members of an OpenAI body: R"("a":1)"
};

class TokenRate {
 public:
  TokenRate(const StoryPlace& place, const StoryPlan& plan);

  void measure();   // one slice
  double rate = 0;  // of the last one

 private:
  Load load_;
  std::uint64_t each_;
  std::uint64_t tokens_;
};

}  // namespace werk::bench
