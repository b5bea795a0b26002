// WERK_ASSERT: always on. A failed one is a bug of Werk's own, never reachable by input; it says
// where and ends the process.
#pragma once

namespace werk {

[[noreturn]] void assert_failed(const char* expression, const char* file, int line) noexcept;

}  // namespace werk

#define WERK_ASSERT(expression)                               \
  do {                                                        \
    if (!(expression)) [[unlikely]] {                         \
      ::werk::assert_failed(#expression, __FILE__, __LINE__); \
    }                                                         \
  } while (false)
