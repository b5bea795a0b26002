#include "werk/base/assert.hpp"

#include <cstdio>
#include <cstdlib>

namespace werk {

void assert_failed(const char* expression, const char* file, int line) noexcept {
  std::fprintf(stderr, "werk: internal error: %s does not hold (%s:%d)\n", expression, file, line);
  std::fflush(stderr);
  std::abort();
}

}  // namespace werk
