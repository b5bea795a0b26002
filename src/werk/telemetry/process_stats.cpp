#include "werk/telemetry/process_stats.hpp"

#include <fmt/format.h>
#include <sys/resource.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>
#include <vector>

namespace werk::telemetry {

namespace {

// A tree is no deeper and no wider; whatever lies beyond isn't counted.
constexpr std::size_t kProcessesMax = 256;

std::uint64_t page_bytes() { return static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE)); }

std::optional<std::string> content_of(const std::string& path) {
  std::ifstream file(path);
  if (!file) return std::nullopt;
  return std::string(std::istreambuf_iterator<char>(file), {});
}

struct Memory {
  std::uint64_t size_pages = 0;
  std::uint64_t resident_pages = 0;
};

std::optional<Memory> memory_of(const std::string& folder) {
  std::ifstream statm(folder + "/statm");
  Memory memory;
  if (!(statm >> memory.size_pages >> memory.resident_pages)) return std::nullopt;
  return memory;
}

// Children are listed by the thread that made them.
void add_children(const std::string& folder, std::vector<int>& pids) {
  std::error_code error;
  for (const auto& thread : std::filesystem::directory_iterator(folder + "/task", error)) {
    std::ifstream children(thread.path() / "children");
    for (int pid = 0; children >> pid && pids.size() < kProcessesMax;) pids.push_back(pid);
  }
}

std::uint64_t open_files(const std::string& folder) {
  std::error_code error;
  const std::filesystem::directory_iterator files(folder + "/fd", error);
  if (error) return 0;
  // The one that reads the folder is among them.
  const auto count = std::distance(begin(files), end(files));
  return count > 0 ? static_cast<std::uint64_t>(count - 1) : 0;
}

// The clock ticks after boot at which it started: the 22nd field of stat, behind the program's name
// in brackets, which may hold anything.
double start_ticks(const std::string& stat) {
  constexpr int kFieldsBetween = 19;
  const std::size_t bracket = stat.rfind(')');
  if (bracket == std::string::npos) return 0;
  std::istringstream rest(stat.substr(bracket + 1));
  std::string field;
  for (int i = 0; i < kFieldsBetween; ++i) rest >> field;
  double ticks = 0;
  rest >> ticks;
  return ticks;
}

double boot_time(const std::string& proc) {
  std::ifstream stat(proc + "/stat");
  std::string word;
  double time = 0;
  while (stat >> word) {
    if (word == "btime" && stat >> time) break;
  }
  return time;
}

std::uint64_t threads_of(const std::string& folder) {
  std::ifstream status(folder + "/status");
  std::string word;
  std::uint64_t count = 0;
  while (status >> word) {
    if (word == "Threads:" && status >> count) break;
  }
  return count;
}

double seconds(const timeval& time) {
  constexpr double kMicrosecond = 1e-6;
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) * kMicrosecond;
}

}  // namespace

ProcessStats own_process_stats(const std::string& proc) {
  const std::string folder = proc + "/self";
  ProcessStats stats;
  if (const auto memory = memory_of(folder)) {
    stats.resident_bytes = memory->resident_pages * page_bytes();
    stats.virtual_bytes = memory->size_pages * page_bytes();
  }
  stats.open_files = open_files(folder);
  stats.threads = threads_of(folder);
  const double ticks = start_ticks(content_of(folder + "/stat").value_or(""));
  stats.started_at = boot_time(proc) + ticks / static_cast<double>(::sysconf(_SC_CLK_TCK));
  rusage used{};
  if (::getrusage(RUSAGE_SELF, &used) == 0)
    stats.cpu_seconds = seconds(used.ru_utime) + seconds(used.ru_stime);
  rlimit files{};
  if (::getrlimit(RLIMIT_NOFILE, &files) == 0) stats.files_max = files.rlim_cur;
  return stats;
}

std::optional<std::uint64_t> resident_bytes(int pid, const std::string& proc) {
  const auto memory = memory_of(fmt::format("{}/{}", proc, pid));
  if (!memory) return std::nullopt;
  return memory->resident_pages * page_bytes();
}

std::optional<std::uint64_t> tree_memory_bytes(int pid, const std::string& proc) {
  std::vector<int> pids = {pid};
  std::optional<std::uint64_t> bytes;
  for (std::size_t i = 0; i < pids.size(); ++i) {
    const auto resident = resident_bytes(pids[i], proc);
    if (!resident) continue;
    bytes = bytes.value_or(0) + *resident;
    add_children(fmt::format("{}/{}", proc, pids[i]), pids);
  }
  return bytes;
}

}  // namespace werk::telemetry
