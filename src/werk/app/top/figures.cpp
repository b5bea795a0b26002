#include "werk/app/top/figures.hpp"

#include <fmt/format.h>

#include <cmath>

#include "werk/base/text.hpp"

namespace werk::app::top {
namespace {

constexpr std::string_view kUnknown = "-";

}  // namespace

std::string count_text(const Count& count) {
  if (!count) return std::string(kUnknown);
  if (*count < 100'000) return fmt::to_string(*count);
  if (*count < 10'000'000) return fmt::format("{}k", *count / 1000);
  if (*count < 10'000'000'000) return fmt::format("{}M", *count / 1'000'000);
  return fmt::format("{}G", *count / 1'000'000'000);
}

std::string age_text(const Figure& seconds) {
  if (!seconds) return std::string(kUnknown);
  if (*seconds < 9.95) return fmt::format("{:.1f}s", *seconds);
  const auto whole = static_cast<std::uint64_t>(std::llround(std::min(*seconds, 1e12)));
  if (whole < 60) return fmt::format("{}s", whole);
  if (whole < 3600) return fmt::format("{}m{:02}s", whole / 60, whole % 60);
  if (whole < 86'400) return fmt::format("{}h{:02}m", whole / 3600, whole / 60 % 60);
  return fmt::format("{}d{:02}h", whole / 86'400, whole / 3600 % 24);
}

std::string rate_text(const Figure& a_second) {
  if (!a_second) return std::string(kUnknown);
  return *a_second < 9999.95 ? fmt::format("{:.1f}", *a_second) : fmt::format("{:.0f}", *a_second);
}

std::string share_text(const Figure& share) {
  return share ? fmt::format("{:.0f}%", *share * 100) : std::string(kUnknown);
}

std::string bytes_text(const Count& bytes) {
  return bytes ? readable_bytes(*bytes) : std::string(kUnknown);
}

}  // namespace werk::app::top
