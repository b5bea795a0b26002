#include "werk/base/text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <numeric>

namespace werk {
namespace {

char lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

// Insertions, deletions, substitutions and swapped neighbours each count one.
std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> before(b.size() + 1);
  std::vector<std::size_t> above(b.size() + 1);
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(above.begin(), above.end(), std::size_t{0});
  for (std::size_t i = 1; i <= a.size(); ++i) {
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t substituted = above[j - 1] + (a[i - 1] == b[j - 1] ? 0u : 1u);
      row[j] = std::min({above[j] + 1, row[j - 1] + 1, substituted});
      const bool swapped = i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
      if (swapped) row[j] = std::min(row[j], before[j - 2] + 1);
    }
    before.swap(above);
    above.swap(row);
  }
  return above[b.size()];
}

std::size_t shared_prefix(std::string_view a, std::string_view b) {
  const auto end = std::mismatch(a.begin(), a.end(), b.begin(), b.end());
  return static_cast<std::size_t>(end.first - a.begin());
}

// Length of the UTF-8 sequence at the front, 0 if it is not a valid one.
std::size_t sequence_length(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const auto tail = [&](std::size_t i) { return i < text.size() && (byte(i) & 0xC0u) == 0x80u; };
  const unsigned char first = byte(0);
  if (first < 0x80) return 1;
  if (first >= 0xC2 && first <= 0xDF) return tail(1) ? 2 : 0;
  if ((first & 0xF0u) == 0xE0) {
    if (!tail(1) || !tail(2)) return 0;
    if (first == 0xE0 && byte(1) < 0xA0) return 0;
    if (first == 0xED && byte(1) > 0x9F) return 0;  // surrogates
    return 3;
  }
  if (first >= 0xF0 && first <= 0xF4) {
    if (!tail(1) || !tail(2) || !tail(3)) return 0;
    if (first == 0xF0 && byte(1) < 0x90) return 0;
    if (first == 0xF4 && byte(1) > 0x8F) return 0;  // above U+10FFFF
    return 4;
  }
  return 0;
}

}  // namespace

std::string to_lower(std::string_view text) {
  std::string out(text);
  std::ranges::transform(out, out.begin(), lower);
  return out;
}

bool equals_ignoring_case(std::string_view a, std::string_view b) {
  return std::ranges::equal(a, b, [](char x, char y) { return lower(x) == lower(y); });
}

std::string_view trim(std::string_view text) {
  constexpr std::string_view kBlank = " \t\r\n";
  const std::size_t first = text.find_first_not_of(kBlank);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(kBlank) - first + 1);
}

std::vector<std::string> near_names(std::string_view wanted,
                                    std::span<const std::string> candidates, std::size_t most) {
  constexpr std::size_t kLongestCompared = 256;
  const std::string mine = to_lower(wanted.substr(0, kLongestCompared));
  std::vector<std::pair<std::size_t, std::string>> found;
  for (const std::string& candidate : candidates) {
    const std::string other = to_lower(std::string_view(candidate).substr(0, kLongestCompared));
    const std::size_t distance = edit_distance(mine, other);
    const std::size_t limit = std::max<std::size_t>(2, mine.size() / 3);
    const bool contained = mine.size() >= 3 && other.find(mine) != std::string::npos;
    const bool common_start =
        shared_prefix(mine, other) >= std::max<std::size_t>(4, mine.size() / 2);
    if (distance <= limit || contained || common_start) found.emplace_back(distance, candidate);
  }
  std::ranges::stable_sort(found, {}, [](const auto& pair) { return pair.first; });
  std::vector<std::string> names;
  for (auto& [distance, name] : found) {
    if (names.size() == most) break;
    names.push_back(std::move(name));
  }
  return names;
}

std::string readable_bytes(std::uint64_t bytes) {
  constexpr std::array<std::string_view, 6> kUnits = {"B", "kB", "MB", "GB", "TB", "PB"};
  double value = static_cast<double>(bytes);
  std::size_t unit = 0;
  while (value >= 1000.0 && unit + 1 < kUnits.size()) {
    value /= 1000.0;
    ++unit;
  }
  return unit == 0 ? fmt::format("{} B", bytes) : fmt::format("{:.1f} {}", value, kUnits[unit]);
}

Result<std::vector<std::string>> shell_words(std::string_view line) {
  std::vector<std::string> words;
  std::string word;
  bool in_word = false;
  for (std::size_t i = 0; i < line.size(); ++i) {
    const char c = line[i];
    if (c == ' ' || c == '\t' || c == '\n' || c == '\r') {
      if (in_word) words.push_back(std::exchange(word, {}));
      in_word = false;
    } else if (c == '\'') {
      const std::size_t end = line.find('\'', i + 1);
      if (end == std::string_view::npos)
        return fail(ErrorCode::invalid_request, "a single quote is not closed");
      word.append(line.substr(i + 1, end - i - 1));
      in_word = true;
      i = end;
    } else if (c == '"') {
      in_word = true;
      for (++i; i < line.size() && line[i] != '"'; ++i) {
        if (line[i] == '\\' && i + 1 < line.size() &&
            std::string_view("$`\"\\\n").find(line[i + 1]) != std::string_view::npos) {
          ++i;
          if (line[i] == '\n') continue;
        }
        word.push_back(line[i]);
      }
      if (i >= line.size()) return fail(ErrorCode::invalid_request, "a double quote is not closed");
    } else if (c == '\\') {
      if (++i >= line.size())
        return fail(ErrorCode::invalid_request, "a backslash stands at the end");
      if (line[i] == '\n') continue;
      word.push_back(line[i]);
      in_word = true;
    } else {
      word.push_back(c);
      in_word = true;
    }
  }
  if (in_word) words.push_back(std::move(word));
  return words;
}

std::string shell_line(std::span<const std::string> words) {
  constexpr std::string_view kPlain =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-+=:,./@%";
  std::string line;
  for (const std::string& word : words) {
    if (!line.empty()) line.push_back(' ');
    if (!word.empty() && word.find_first_not_of(kPlain) == std::string::npos) {
      line += word;
      continue;
    }
    line.push_back('\'');
    for (const char c : word) {
      if (c == '\'') {
        line += "'\\''";
      } else {
        line.push_back(c);
      }
    }
    line.push_back('\'');
  }
  return line;
}

std::string printable(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    const std::size_t length = sequence_length(text);
    if (length == 0) {
      out += "\xEF\xBF\xBD";
      text.remove_prefix(1);
      continue;
    }
    const auto first = static_cast<unsigned char>(text[0]);
    if (length == 1 && (first < 0x20 || first == 0x7F) && first != '\t' && first != '\n') {
      out.push_back('?');
    } else {
      out.append(text.substr(0, length));
    }
    text.remove_prefix(length);
  }
  return out;
}

bool is_valid_utf8(std::string_view text) {
  while (!text.empty()) {
    const std::size_t length = sequence_length(text);
    if (length == 0) return false;
    text.remove_prefix(length);
  }
  return true;
}

}  // namespace werk
