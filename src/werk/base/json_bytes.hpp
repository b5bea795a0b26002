// What bytes of JSON text are, looked at one by one or eight at a time: the first byte of the text
// is the lowest of the word. For the scanner, the cursors and the writer of strings.
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>

namespace werk {

static_assert(std::endian::native == std::endian::little);

inline constexpr std::uint64_t kOnes = 0x0101010101010101u;
inline constexpr std::uint64_t kHighs = 0x8080808080808080u;

// The high bit of each byte of the word that is `byte`. A borrow can mark bytes above a true one,
// so of the marks only the lowest is right.
inline std::uint64_t marks_of(std::uint64_t word, unsigned char byte) {
  const std::uint64_t other = word ^ (kOnes * byte);
  return (other - kOnes) & ~other & kHighs;
}

// Of these too only the lowest mark is right.
inline std::uint64_t marks_below_space(std::uint64_t word) {
  return (word - kOnes * 0x20) & ~word & kHighs;
}

// What JSON escapes in a string: below 0x20, a quote, a backslash.
inline std::uint64_t marks_of_escaped(std::uint64_t word) {
  return marks_of(word, '"') | marks_of(word, '\\') | marks_below_space(word);
}

// What ends a plain run: that, and what is not ASCII.
inline std::uint64_t marks_of_unplain(std::uint64_t word) {
  return marks_of_escaped(word) | (word & kHighs);
}

// The first byte at or after `at` that `marks` marks; `end` if there is none. It may mark no 'x'.
template <std::uint64_t (*marks)(std::uint64_t)>
const char* find_marked(const char* at, const char* end) {
  constexpr std::ptrdiff_t kWord = sizeof(std::uint64_t);
  while (at != end) {
    const std::ptrdiff_t bytes = end - at < kWord ? end - at : kWord;
    std::uint64_t word = kOnes * 'x';
    if (bytes == kWord) {
      std::memcpy(&word, at, kWord);
    } else {
      std::memcpy(&word, at, static_cast<std::size_t>(bytes));
    }
    if (const std::uint64_t found = marks(word); found != 0)
      return at + std::countr_zero(found) / 8;
    at += bytes;
  }
  return end;
}

inline bool is_blank(char c) { return c == ' ' || c == '\n' || c == '\r' || c == '\t'; }
inline bool is_digit(char c) { return c >= '0' && c <= '9'; }

}  // namespace werk
