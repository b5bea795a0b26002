#include "werk/app/setting_values.hpp"

#include <algorithm>
#include <filesystem>

#include "werk/base/text.hpp"

namespace werk::app {

Status read_choice(const std::string& text, std::span<const std::string> choices) {
  if (std::ranges::find(choices, text) != choices.end()) return {};
  std::string message =
      fmt::format("takes {}, not \"{}\"", fmt::join(choices, ", "), printable(text));
  const auto near = near_names(text, choices, 1);
  if (!near.empty()) message += fmt::format("; did you mean {}?", near.front());
  return fail(ErrorCode::invalid_request, std::move(message));
}

Result<std::chrono::milliseconds> parse_duration(std::string_view text) {
  double number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  const std::string_view unit(end, static_cast<std::size_t>(text.data() + text.size() - end));
  double factor = 0;
  if (unit == "ms") factor = 1;
  if (unit == "s" || unit.empty()) factor = 1000;
  if (unit == "m") factor = 60'000;
  if (unit == "h") factor = 3'600'000;
  constexpr double kLongest = 365.0 * 24 * 3'600'000;
  const bool sound = error == std::errc() && !text.empty() && factor > 0 && number >= 0 &&
                     number * factor <= kLongest;
  if (!sound) {
    return fail(ErrorCode::invalid_request,
                fmt::format("takes a duration such as 500ms, 30s, 2m or 1h, not \"{}\"", text));
  }
  return std::chrono::milliseconds(static_cast<std::int64_t>(number * factor));
}

std::string duration_text(std::chrono::milliseconds duration) {
  const std::int64_t count = duration.count();
  if (count == 0) return "0";
  constexpr std::int64_t kSecond = 1000;
  constexpr std::int64_t kMinute = 60 * kSecond;
  constexpr std::int64_t kHour = 60 * kMinute;
  if (count % kHour == 0) return fmt::format("{}h", count / kHour);
  if (count % kMinute == 0) return fmt::format("{}m", count / kMinute);
  if (count % kSecond == 0) return fmt::format("{}s", count / kSecond);
  return fmt::format("{}ms", count);
}

std::string placed_path(const std::string& text, const std::string& folder,
                        const std::optional<std::string>& user_home, BareName bare) {
  if (text.starts_with("~/") && user_home && !user_home->empty())
    return (std::filesystem::path(*user_home) / text.substr(2)).lexically_normal().string();
  if (bare == BareName::keep && text.find('/') == std::string::npos) return text;
  return (std::filesystem::path(folder) / text).lexically_normal().string();
}

}  // namespace werk::app
