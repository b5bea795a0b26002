// How the values of settings are written and read: numbers in a range, words of a choice,
// durations. Errors say what is taken; the caller puts the setting's name before them. Pure, any
// thread.
#pragma once

#include <fmt/format.h>

#include <charconv>
#include <chrono>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "werk/base/result.hpp"

namespace werk::app {

template <class Number>
Status read_number(const std::string& text, Number least, Number most, Number& into) {
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  const bool whole = error == std::errc() && end == text.data() + text.size() && !text.empty();
  if (!whole || value < least || value > most) {
    return fail(ErrorCode::invalid_request,
                fmt::format("takes a whole number from {} to {}, not \"{}\"", least, most, text));
  }
  into = static_cast<Number>(value);
  return {};
}

template <class Number>
Status read_number(const std::string& text, Number least, Number most,
                   std::optional<Number>& into) {
  Number value = 0;
  Status read = read_number(text, least, most, value);
  if (read) into = value;
  return read;
}

// Fails for any other word, with the nearest of them.
Status read_choice(const std::string& text, std::span<const std::string> choices);

// "500ms", "30s", "2m", "1h", "0" or a bare number of seconds.
Result<std::chrono::milliseconds> parse_duration(std::string_view text);
// The shortest text that parse_duration reads as this.
std::string duration_text(std::chrono::milliseconds duration);

// "~/x" below the person's home; a path that isn't absolute below `folder`. A bare name stays with
// BareName::keep: it is looked up in PATH.
enum class BareName : std::uint8_t { is_path, keep };
std::string placed_path(const std::string& text, const std::string& folder,
                        const std::optional<std::string>& user_home, BareName bare);

}  // namespace werk::app
