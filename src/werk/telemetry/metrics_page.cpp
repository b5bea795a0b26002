#include "werk/telemetry/metrics_page.hpp"

#include <fmt/format.h>
#include <prometheus/metric_family.h>
#include <prometheus/text_serializer.h>

#include <limits>
#include <sstream>
#include <vector>

#include "werk/base/assert.hpp"
#include "werk/telemetry/catalogue.hpp"

namespace werk::telemetry {

namespace {

using Values = std::vector<std::string>;  // of a family's labels, in the catalogue's order

prometheus::MetricType type_of(MetricKind kind) {
  switch (kind) {
    case MetricKind::counter: return prometheus::MetricType::Counter;
    case MetricKind::gauge: return prometheus::MetricType::Gauge;
    case MetricKind::histogram: return prometheus::MetricType::Histogram;
  }
  return prometheus::MetricType::Untyped;
}

class Page {
 public:
  Page() {
    for (const MetricInfo& info : metric_catalogue()) {
      prometheus::MetricFamily& family = families_.emplace_back();
      family.name = info.name;
      family.help = info.help;
      family.type = type_of(info.kind);
    }
  }

  void add(MetricId id, double value, const Values& labels = {}) {
    prometheus::ClientMetric& metric = series(id, labels);
    if (info_of(id).kind == MetricKind::counter) {
      metric.counter.value = value;
    } else {
      metric.gauge.value = value;
    }
  }
  void add(MetricId id, std::uint64_t value, const Values& labels = {}) {
    add(id, static_cast<double>(value), labels);
  }

  void add(MetricId id, const Histogram& histogram, const Values& labels) {
    prometheus::ClientMetric::Histogram& shown = series(id, labels).histogram;
    std::uint64_t count = 0;
    for (std::size_t i = 0; i <= histogram.bounds().size(); ++i) {
      count += histogram.in_range(i);
      const double bound = i < histogram.bounds().size() ? histogram.bounds()[i]
                                                         : std::numeric_limits<double>::infinity();
      shown.bucket.push_back({count, bound});
    }
    shown.sample_count = count;
    shown.sample_sum = histogram.sum();
  }

  std::string text() const {
    std::ostringstream out;
    prometheus::TextSerializer().Serialize(out, families_);
    return std::move(out).str();
  }

 private:
  prometheus::ClientMetric& series(MetricId id, const Values& labels) {
    prometheus::ClientMetric& metric =
        families_[static_cast<std::size_t>(id)].metric.emplace_back();
    std::string_view names = info_of(id).labels;
    for (const std::string& value : labels) {
      const std::string_view name = names.substr(0, names.find(','));
      metric.label.push_back({std::string(name), value});
      names.remove_prefix(std::min(name.size() + 1, names.size()));
    }
    WERK_ASSERT(names.empty());
    return metric;
  }

  std::vector<prometheus::MetricFamily> families_;
};

void add_model(Page& page, const std::string& name, const Metrics::OfModel& model) {
  for (const auto& [series, count] : model.calls) {
    page.add(MetricId::calls, count,
             {std::string(name_of(series.dialect)), std::string(series.route), name,
              std::string(name_of(series.outcome)), fmt::format("{}xx", series.status_class),
              series.cause ? std::string(werk::name_of(*series.cause)) : "none"});
  }
  page.add(MetricId::call_first_byte, model.first_byte, {name});
  page.add(MetricId::call_inter_token, model.inter_token, {name});
  page.add(MetricId::call_total, model.total, {name});
  page.add(MetricId::prompt_tokens, model.prompt_tokens, {name});
  page.add(MetricId::prompt_tokens_cached, model.prompt_tokens_cached, {name});
  page.add(MetricId::output_tokens, model.output_tokens, {name});
}

void add_engine(Page& page, const std::string& name, const Metrics::OfEngine& engine) {
  page.add(MetricId::runtime_starts, engine.starts, {name});
  page.add(MetricId::runtime_start_seconds, engine.start_seconds, {name});
  for (const auto& [cause, count] : engine.start_failures)
    page.add(MetricId::runtime_start_failures, count, {name, std::string(werk::name_of(cause))});
  for (const auto& [reason, count] : engine.evictions)
    page.add(MetricId::runtime_evictions, count, {name, std::string(name_of(reason))});
  page.add(MetricId::runtime_deaths, engine.deaths, {name});
}

void add_gauges(Page& page, const Gauges& gauges) {
  page.add(MetricId::calls_active, gauges.calls_active);
  for (const auto& [cause, count] : gauges.waiting)
    page.add(MetricId::calls_waiting, count, {cause});
  for (const auto& [state, count] : gauges.runtime_states)
    page.add(MetricId::runtimes, count, {state});
  for (const auto& [name, runtimes] : gauges.runtimes) {
    const Values labels = {name.first, name.second};
    if (runtimes.slots) page.add(MetricId::slots, *runtimes.slots, labels);
    page.add(MetricId::slots_busy, runtimes.slots_busy, labels);
    if (runtimes.memory_bytes) page.add(MetricId::engine_memory, *runtimes.memory_bytes, labels);
  }
  page.add(MetricId::loop_lag, gauges.loop_lag_seconds);
  page.add(MetricId::connections, gauges.connections);
  page.add(MetricId::ready, gauges.ready ? 1.0 : 0.0);
  page.add(MetricId::build_info, 1.0, {gauges.version});
  page.add(MetricId::process_cpu, gauges.process.cpu_seconds);
  page.add(MetricId::process_memory, gauges.process.resident_bytes);
  page.add(MetricId::process_virtual_memory, gauges.process.virtual_bytes);
  page.add(MetricId::process_open_files, gauges.process.open_files);
  page.add(MetricId::process_files_max, gauges.process.files_max);
  page.add(MetricId::process_threads, gauges.process.threads);
  page.add(MetricId::process_start_time, gauges.process.started_at);
}

}  // namespace

std::string metrics_page(const Metrics& metrics, const Gauges& gauges) {
  Page page;
  for (const auto& [name, model] : metrics.models()) add_model(page, name, model);
  for (const auto& [name, engine] : metrics.engines()) add_engine(page, name, engine);
  for (const auto& [phase, count] : metrics.cancelled())
    page.add(MetricId::calls_cancelled, count, {std::string(name_of(phase))});
  add_gauges(page, gauges);
  return page.text();
}

}  // namespace werk::telemetry
