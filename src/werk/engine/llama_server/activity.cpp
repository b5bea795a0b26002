#include "werk/engine/llama_server/activity.hpp"

#include <fmt/format.h>

#include <fstream>
#include <string>

#include "werk/telemetry/process_stats.hpp"

namespace werk::engine::llama_server {
namespace {

constexpr std::uint64_t kResidentStepBytes = 1024 * 1024;
constexpr std::uint64_t kReadStepBytes = 64 * 1024;

// The number behind "name:" in a file of such lines; 0 without one.
std::uint64_t number_behind(const std::string& path, std::string_view name) {
  std::ifstream in(path);
  std::string word;
  while (in >> word) {
    std::uint64_t number = 0;
    if (word == name && in >> number) return number;
  }
  return 0;
}

bool grew(std::uint64_t& most, std::uint64_t now, std::uint64_t step) {
  if (now < most + step) return false;
  most = now;
  return true;
}

}  // namespace

Activity activity_of(pid_t pid, std::uint64_t output_bytes) {
  Activity activity;
  activity.output_bytes = output_bytes;
  activity.resident_bytes = telemetry::resident_bytes(pid).value_or(0);
  activity.read_bytes = number_behind(fmt::format("/proc/{}/io", pid), "read_bytes:");
  return activity;
}

std::optional<std::string_view> ActivityWatch::look(const Activity& now) {
  // Every number is looked at each time, so that all of them are remembered.
  const bool printed = grew(most_.output_bytes, now.output_bytes, 1);
  const bool loaded = grew(most_.resident_bytes, now.resident_bytes, kResidentStepBytes);
  const bool read = grew(most_.read_bytes, now.read_bytes, kReadStepBytes);
  if (printed) return "it prints";
  if (loaded) return "its memory grows";
  if (read) return "it reads";
  return std::nullopt;
}

std::uint64_t memory_available_bytes() {
  return number_behind("/proc/meminfo", "MemAvailable:") * 1024;
}

}  // namespace werk::engine::llama_server
