#include "werk/app/bench/machine.hpp"

#include <unistd.h>

#include <array>
#include <cstdlib>
#include <fstream>
#include <iterator>

#include "werk/base/text.hpp"

namespace werk::app::bench {

Machine this_machine() {
  Machine machine;
  std::ifstream file("/proc/cpuinfo");
  const std::string cpuinfo(std::istreambuf_iterator<char>(file), {});
  machine.cpu = processor_in(cpuinfo);
  const long cores = ::sysconf(_SC_NPROCESSORS_ONLN);
  const long pages = ::sysconf(_SC_PHYS_PAGES);
  const long page = ::sysconf(_SC_PAGE_SIZE);
  if (cores > 0) machine.cores = static_cast<unsigned>(cores);
  if (pages > 0 && page > 0)
    machine.memory_bytes = static_cast<std::uint64_t>(pages) * static_cast<std::uint64_t>(page);
  machine.load_before = load_average();
  return machine;
}

std::vector<double> load_average() {
  std::array<double, 3> loads{};
  const int count = ::getloadavg(loads.data(), static_cast<int>(loads.size()));
  return {loads.begin(), loads.begin() + std::max(count, 0)};
}

std::string processor_in(std::string_view cpuinfo) {
  constexpr std::string_view kName = "model name";
  const std::size_t at = cpuinfo.find(kName);
  if (at == std::string_view::npos) return {};
  const std::string_view rest = cpuinfo.substr(at);
  const std::string_view line = rest.substr(0, rest.find('\n'));
  const std::size_t colon = line.find(':');
  return colon == std::string_view::npos ? std::string() : printable(trim(line.substr(colon + 1)));
}

}  // namespace werk::app::bench
