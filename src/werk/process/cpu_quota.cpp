#include "werk/process/cpu_quota.hpp"

#include <algorithm>
#include <cstdint>
#include <fstream>

#include "werk/base/text.hpp"

namespace werk::process {
namespace {

namespace fs = std::filesystem;

// "150000 100000": so many microseconds in each period of so many; "max 100000": no limit.
std::optional<std::size_t> cores_in(const fs::path& limit) {
  std::ifstream file(limit);
  std::uint64_t time_us = 0;
  std::uint64_t period_us = 0;
  if (!(file >> time_us >> period_us) || period_us == 0) return std::nullopt;
  return std::max<std::size_t>(time_us / period_us, 1);
}

// "/user.slice/session-1.scope" of the line "0::/user.slice/session-1.scope".
std::optional<fs::path> group_in(std::string_view own) {
  static constexpr std::string_view kVersion2 = "0::/";
  std::optional<fs::path> group;
  for_each_line(own, [&group](std::string_view line) {
    if (line.starts_with(kVersion2)) group = line.substr(kVersion2.size());
  });
  return group;
}

}  // namespace

std::optional<std::size_t> quota_cores(const fs::path& mount, std::string_view own) {
  const std::optional<fs::path> group = group_in(own);
  if (!group) return std::nullopt;
  std::optional<std::size_t> least = cores_in(mount / "cpu.max");
  fs::path folder = mount;
  for (const fs::path& part : *group) {
    folder /= part;
    const auto cores = cores_in(folder / "cpu.max");
    if (cores) least = std::min(least.value_or(*cores), *cores);
  }
  return least;
}

}  // namespace werk::process
