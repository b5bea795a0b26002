#include "werk/base/timestamp.hpp"

#include <fmt/chrono.h>

#include <ctime>

namespace werk {

std::string timestamp(std::chrono::system_clock::time_point time) {
  return fmt::format("{:%Y-%m-%dT%H:%M:%SZ}",
                     fmt::gmtime(std::chrono::system_clock::to_time_t(time)));
}

std::optional<std::chrono::system_clock::time_point> time_of(const std::string& text) {
  std::tm parts{};
  const char* end = ::strptime(text.c_str(), "%Y-%m-%dT%H:%M:%SZ", &parts);
  if (end == nullptr || *end != '\0') return std::nullopt;
  return std::chrono::system_clock::from_time_t(::timegm(&parts));
}

}  // namespace werk
