// The text of GET /metrics: what was counted and what is so right now, as Prometheus families in
// its text format. prometheus-cpp writes the text; this module alone knows it. Pure: values in,
// text out.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "werk/telemetry/metrics.hpp"
#include "werk/telemetry/process_stats.hpp"

namespace werk::telemetry {

// What is so at this moment.
struct Gauges {
  struct OfRuntimes {
    std::optional<std::uint64_t> slots;
    std::uint64_t slots_busy = 0;
    std::optional<std::uint64_t> memory_bytes;
  };
  std::string version;
  std::uint64_t calls_active = 0;
  std::map<std::string, std::uint64_t> waiting;                        // by cause
  std::map<std::string, std::uint64_t> runtime_states;                 // by state
  std::map<std::pair<std::string, std::string>, OfRuntimes> runtimes;  // by engine and model
  double loop_lag_seconds = 0;
  std::uint64_t connections = 0;
  bool ready = false;
  ProcessStats process;
};

inline constexpr std::string_view kMetricsType = "text/plain; version=0.0.4; charset=utf-8";

std::string metrics_page(const Metrics& metrics, const Gauges& gauges);

}  // namespace werk::telemetry
