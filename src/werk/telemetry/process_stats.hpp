// What the operating system tells of processes, read from /proc: of the node itself, and the memory
// of an engine with its children. Each read costs microseconds and waits for nothing (statm takes
// no lock of the process it is about), so that the loop may do it; callers keep what they read for
// a second. Pure reading, any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace werk::telemetry {

struct ProcessStats {
  double cpu_seconds = 0;
  std::uint64_t resident_bytes = 0;
  std::uint64_t virtual_bytes = 0;
  std::uint64_t open_files = 0;
  std::uint64_t files_max = 0;
  std::uint64_t threads = 0;
  double started_at = 0;  // seconds since 1970
};

// `proc` is /proc but for tests. Zeros where something can't be told.
ProcessStats own_process_stats(const std::string& proc = "/proc");

// Resident memory of one process. None: there is no such process.
std::optional<std::uint64_t> resident_bytes(int pid, const std::string& proc = "/proc");
// Resident memory of a process and all its descendants; shared pages count for each. None: there is
// no such process.
std::optional<std::uint64_t> tree_memory_bytes(int pid, const std::string& proc = "/proc");

}  // namespace werk::telemetry
