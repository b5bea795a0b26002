#include "werk/model/split_name.hpp"

#include <fmt/format.h>

#include <charconv>

namespace werk::model {
namespace {

constexpr std::size_t kDigits = 5;
constexpr std::string_view kOf = "-of-";
constexpr std::string_view kEnding = ".gguf";

std::uint32_t number_of(std::string_view digits) {
  std::uint32_t number = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
  return error == std::errc() && end == digits.data() + digits.size() ? number : 0;
}

}  // namespace

std::optional<SplitName> parse_split_name(std::string_view file_name) {
  constexpr std::size_t kTail = 1 + kDigits + kOf.size() + kDigits + kEnding.size();
  if (file_name.size() <= kTail) return std::nullopt;
  const std::string_view tail = file_name.substr(file_name.size() - kTail);
  if (tail[0] != '-' || tail.substr(1 + kDigits, kOf.size()) != kOf || !tail.ends_with(kEnding)) {
    return std::nullopt;
  }
  SplitName name;
  name.prefix = file_name.substr(0, file_name.size() - kTail);
  name.number = number_of(tail.substr(1, kDigits));
  name.count = number_of(tail.substr(1 + kDigits + kOf.size(), kDigits));
  if (name.number == 0 || name.number > name.count) return std::nullopt;
  return name;
}

std::string split_file_name(std::string_view prefix, std::uint32_t number, std::uint32_t count) {
  return fmt::format("{}-{:05}-of-{:05}.gguf", prefix, number, count);
}

}  // namespace werk::model
