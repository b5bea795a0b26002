// The catalogue of metrics: each family that /metrics may show, with its kind, its labels and what
// it means. The page is made from it and docs/operations.md is checked against it, so that a metric
// exists once. Plain data, any thread.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

namespace werk::telemetry {

enum class MetricKind : std::uint8_t { counter, gauge, histogram };
std::string_view name_of(MetricKind kind);

// In the order of the page.
enum class MetricId : std::uint8_t {
  calls,
  calls_active,
  calls_waiting,
  calls_cancelled,
  call_first_byte,
  call_inter_token,
  call_total,
  prompt_tokens,
  prompt_tokens_cached,
  output_tokens,
  runtimes,
  runtime_starts,
  runtime_start_seconds,
  runtime_start_failures,
  runtime_evictions,
  runtime_deaths,
  slots,
  slots_busy,
  engine_memory,
  loop_lag,
  connections,
  ready,
  build_info,
  process_cpu,
  process_memory,
  process_virtual_memory,
  process_open_files,
  process_files_max,
  process_threads,
  process_start_time,
};

struct MetricInfo {
  MetricId id;
  std::string_view name;
  MetricKind kind;
  std::string_view labels;  // names, separated by commas
  std::string_view help;
};

// One for each id, in their order.
std::span<const MetricInfo> metric_catalogue();
const MetricInfo& info_of(MetricId id);

}  // namespace werk::telemetry
