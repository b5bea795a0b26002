// Small questions about text that several modules ask: which known name is nearest to a mistyped
// one, how a number of bytes reads, how a POSIX shell would split a line into words. Pure
// functions, any thread.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "werk/base/result.hpp"

namespace werk {

// ASCII only: protocol words, header names, hosts.
std::string to_lower(std::string_view text);
bool equals_ignoring_case(std::string_view a, std::string_view b);
std::string_view trim(std::string_view text);

// The candidates that resemble `wanted` (a shared prefix or a small edit distance, ignoring case),
// best first, at most `most`. Empty if none does.
std::vector<std::string> near_names(std::string_view wanted,
                                    std::span<const std::string> candidates, std::size_t most = 3);

// "98.4 MB", "1.2 GB"; decimal units as disks and downloads use them.
std::string readable_bytes(std::uint64_t bytes);

// Calls with each line, without its end.
template <class Take>
void for_each_line(std::string_view text, Take take) {
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(0, end);
    if (line.ends_with('\r')) line.remove_suffix(1);
    take(line);
    text.remove_prefix(std::min(end + 1, text.size()));
  }
}

// Splits as a POSIX shell does: blanks separate, '...' is literal, "..." knows backslash before $ `
// " \ and newline, a bare backslash quotes the next character. No expansion of any kind. An
// unclosed quote is an error.
Result<std::vector<std::string>> shell_words(std::string_view line);

// The same in reverse: one line that a shell would split into exactly these words.
std::string shell_line(std::span<const std::string> words);

// Replaces each byte that does not belong to valid UTF-8 with U+FFFD, and control characters other
// than tab and newline with '?': what an engine printed, made fit for an error message.
std::string printable(std::string_view text);

bool is_valid_utf8(std::string_view text);

}  // namespace werk
