#include "werk/telemetry/catalogue.hpp"

#include <array>

namespace werk::telemetry {

namespace {

constexpr auto kCounter = MetricKind::counter;
constexpr auto kGauge = MetricKind::gauge;
constexpr auto kHistogram = MetricKind::histogram;
using Id = MetricId;

constexpr std::array kCatalogue = {
    MetricInfo{Id::calls, "werk_calls_total", kCounter, "dialect,route,model,outcome,status,cause",
               "Calls that have ended."},
    MetricInfo{Id::calls_active, "werk_calls_active", kGauge, "", "Calls that have not ended."},
    MetricInfo{Id::calls_waiting, "werk_calls_waiting", kGauge, "cause",
               "Calls that wait for a place in a pool, a load or a slot."},
    MetricInfo{Id::calls_cancelled, "werk_calls_cancelled_total", kCounter, "phase",
               "Calls whose client left, by what they were at."},
    MetricInfo{Id::call_first_byte, "werk_call_first_byte_seconds", kHistogram, "model",
               "From a call's arrival to the first byte of its answer."},
    MetricInfo{Id::call_inter_token, "werk_call_inter_token_seconds", kHistogram, "model",
               "Between two pieces of an answer, counted when the call ends."},
    MetricInfo{Id::call_total, "werk_call_seconds", kHistogram, "model",
               "From a call's arrival to its end."},
    MetricInfo{Id::prompt_tokens, "werk_prompt_tokens_total", kCounter, "model",
               "Tokens of prompts, cached ones included."},
    MetricInfo{Id::prompt_tokens_cached, "werk_prompt_tokens_cached_total", kCounter, "model",
               "Tokens of prompts that the engine took from its cache."},
    MetricInfo{Id::output_tokens, "werk_output_tokens_total", kCounter, "model",
               "Tokens generated."},
    MetricInfo{Id::runtimes, "werk_runtimes", kGauge, "state",
               "Runtimes that start, are ready, close or stop."},
    MetricInfo{Id::runtime_starts, "werk_runtime_starts_total", kCounter, "engine",
               "Starts of runtimes, whatever came of them."},
    MetricInfo{Id::runtime_start_seconds, "werk_runtime_start_seconds", kHistogram, "engine",
               "From the start of a runtime until it was ready."},
    MetricInfo{Id::runtime_start_failures, "werk_runtime_start_failures_total", kCounter,
               "engine,cause", "Starts that failed."},
    MetricInfo{Id::runtime_evictions, "werk_runtime_evictions_total", kCounter, "engine,reason",
               "Runtimes that were stopped while the node goes on."},
    MetricInfo{Id::runtime_deaths, "werk_runtime_deaths_total", kCounter, "engine",
               "Runtimes that ended by themselves."},
    MetricInfo{Id::slots, "werk_slots", kGauge, "engine,model",
               "Calls that runtimes take at once, where Werk bounds them."},
    MetricInfo{Id::slots_busy, "werk_slots_busy", kGauge, "engine,model",
               "Slots that are taken, until the engine is seen to be done with them."},
    MetricInfo{Id::engine_memory, "werk_engine_resident_memory_bytes", kGauge, "engine,model",
               "Resident memory of the engines' processes and their children."},
    MetricInfo{Id::loop_lag, "werk_loop_lag_seconds", kGauge, "",
               "How late the loop came to a timer, at worst in the last 10 s."},
    MetricInfo{Id::connections, "werk_connections", kGauge, "", "Connections of clients."},
    MetricInfo{Id::ready, "werk_ready", kGauge, "", "1 while /readyz says yes."},
    MetricInfo{Id::build_info, "werk_build_info", kGauge, "version", "1, with the version."},
    MetricInfo{Id::process_cpu, "process_cpu_seconds_total", kCounter, "",
               "Processor time of the node itself."},
    MetricInfo{Id::process_memory, "process_resident_memory_bytes", kGauge, "",
               "Resident memory of the node itself."},
    MetricInfo{Id::process_virtual_memory, "process_virtual_memory_bytes", kGauge, "",
               "Address space of the node itself."},
    MetricInfo{Id::process_open_files, "process_open_fds", kGauge, "",
               "Descriptors that the node has open."},
    MetricInfo{Id::process_files_max, "process_max_fds", kGauge, "",
               "Descriptors that the node may have open."},
    MetricInfo{Id::process_threads, "process_threads", kGauge, "", "Threads of the node."},
    MetricInfo{Id::process_start_time, "process_start_time_seconds", kGauge, "",
               "When the node started, in seconds since 1970."},
};

constexpr bool in_order() {
  for (std::size_t i = 0; i < kCatalogue.size(); ++i) {
    if (kCatalogue[i].id != static_cast<MetricId>(i)) return false;
  }
  return kCatalogue.size() == static_cast<std::size_t>(Id::process_start_time) + 1;
}
static_assert(in_order());

}  // namespace

std::string_view name_of(MetricKind kind) {
  switch (kind) {
    case MetricKind::counter: return "counter";
    case MetricKind::gauge: return "gauge";
    case MetricKind::histogram: return "histogram";
  }
  return "gauge";
}

std::span<const MetricInfo> metric_catalogue() { return kCatalogue; }

const MetricInfo& info_of(MetricId id) { return kCatalogue[static_cast<std::size_t>(id)]; }

}  // namespace werk::telemetry
