#include "werk/app/bench/report.hpp"

#include <fmt/format.h>

#include <boost/json/array.hpp>

namespace werk::app::bench {

namespace json = boost::json;

namespace {

template <class T>
json::value or_null(const std::optional<T>& value) {
  return value ? json::value(*value) : json::value(nullptr);
}

json::value text_or_null(const std::string& text) {
  return text.empty() ? json::value(nullptr) : json::value(text);
}

json::value percentiles(const std::optional<Percentiles>& found) {
  if (!found) return nullptr;
  return json::object{
      {"p50", found->p50}, {"p90", found->p90}, {"p95", found->p95}, {"p99", found->p99}};
}

std::optional<double> rate_of(const RequestRecord& request) {
  if (!request.error.empty() || !request.completion_tokens || request.elapsed_seconds <= 0)
    return std::nullopt;
  return static_cast<double>(*request.completion_tokens) / request.elapsed_seconds;
}

std::optional<double> mean_gap_of(const RequestRecord& request) {
  if (request.pieces < 2 || !request.ttft_seconds || !request.last_seconds) return std::nullopt;
  return (*request.last_seconds - *request.ttft_seconds) / (request.pieces - 1);
}

json::object request_json(const RequestRecord& request) {
  return {{"model", request.model},
          {"begun_seconds", request.begun_seconds},
          {"elapsed_seconds", request.elapsed_seconds},
          {"ttft_seconds", or_null(request.ttft_seconds)},
          {"completion_tokens", or_null(request.completion_tokens)},
          {"usage", or_null(request.usage)},
          {"request_tokens_per_second", or_null(rate_of(request))},
          {"inter_token_mean_seconds", or_null(mean_gap_of(request))},
          {"pieces", request.pieces},
          // Only a Werk node tells these; a time to the first token includes both.
          {"queue_seconds", or_null(request.queue_seconds)},
          {"load_seconds", or_null(request.load_seconds)},
          {"finish_reason", text_or_null(request.finish_reason)},
          {"status", request.status == 0 ? json::value(nullptr) : json::value(request.status)},
          {"error", text_or_null(request.error)}};
}

json::object run_json(const Session& session, const RunRecord& run) {
  const RunFigures figures = figures_of(run);
  json::array requests;
  for (const RequestRecord& request : run.requests) {
    if (request.ended) requests.push_back(request_json(request));
  }
  const bool first = run.side == Side::first;
  const bool by_rate = run.level.callers == 0;
  const std::size_t unfinished = run.requests.size() - requests.size();
  return {
      {"server", first ? session.first.url : session.against->url},
      {"side", first ? "A" : "B"},
      {"concurrency", by_rate ? json::value(nullptr) : json::value(run.level.callers)},
      {"rate", by_rate ? json::value(run.level.rate) : json::value(nullptr)},
      {"repeat", run.repeat},
      {"discarded", run.discarded},
      {"elapsed_seconds", run.elapsed_seconds},
      {"successful_requests", figures.succeeded},
      {"failed_requests", figures.failed},
      {"unfinished_requests", unfinished},
      {"output_tokens", or_null(figures.output_tokens)},
      {"aggregate_tokens_per_second", or_null(figures.tokens_per_second)},
      {"request_tokens_per_second_median", or_null(figures.request_tokens_per_second)},
      {"ttft_median_seconds", figures.ttft ? json::value(figures.ttft->p50) : json::value(nullptr)},
      {"percentiles", json::object{{"ttft_seconds", percentiles(figures.ttft)},
                                   {"total_seconds", percentiles(figures.total)},
                                   {"inter_token_seconds", percentiles(figures.inter_token)}}},
      {"engine_processes", or_null(run.engine_processes)},
      {"observability_before", or_null(run.observability_before)},
      {"observability_after", or_null(run.observability_after)},
      {"requests", std::move(requests)}};
}

json::object prompts_json(const Prompts& prompts) {
  const bool made = prompts.kind == PromptKind::made;
  const bool file = prompts.kind == PromptKind::file;
  return {
      {"kind", name_of(prompts.kind)},
      {"tokens", made ? json::value(prompts.tokens) : json::value(nullptr)},
      {"shared_prefix_tokens", made ? json::value(prompts.shared_tokens) : json::value(nullptr)},
      {"count", file ? json::value(prompts.members.size()) : json::value(nullptr)},
      {"sha256", text_or_null(prompts.digest)}};
}

json::object summary_json(const Summary& summary) {
  const bool any = summary.pairs > 0;
  const auto or_none = [any](double value) { return any ? json::value(value) : json::value(); };
  return {{"median", or_none(summary.median)},
          {"low", or_none(summary.low)},
          {"high", or_none(summary.high)},
          {"pairs", summary.pairs},
          {"dropped", summary.dropped}};
}

json::value ratios_json(const Session& session) {
  if (!session.against) return nullptr;
  json::array all;
  for (const LevelRatios& ratios : ratios_of(session)) {
    const bool by_rate = ratios.level.callers == 0;
    all.push_back(json::object{
        {"concurrency", by_rate ? json::value(nullptr) : json::value(ratios.level.callers)},
        {"rate", by_rate ? json::value(ratios.level.rate) : json::value(nullptr)},
        {"aggregate_tokens_per_second", summary_json(ratios.tokens_per_second)},
        {"ttft_median_seconds", summary_json(ratios.ttft_p50)},
        {"total_median_seconds", summary_json(ratios.total_p50)}});
  }
  return all;
}

json::array array_of(const std::vector<double>& values) {
  return json::array(values.begin(), values.end());
}

json::object hardware_json(const Machine& machine) {
  return {{"cpu", text_or_null(machine.cpu)},
          {"cores", machine.cores},
          {"memory_bytes", machine.memory_bytes},
          {"load_average_before", array_of(machine.load_before)},
          {"load_average_after", array_of(machine.load_after)}};
}

json::object versions_json(const Session& session) {
  json::object versions{{"werk", session.werk_version},
                        {"server", text_or_null(session.first.version)}};
  if (session.against) versions["against"] = text_or_null(session.against->version);
  return versions;
}

}  // namespace

json::object report_of(const Session& session) {
  const Plan& plan = session.plan;
  json::array runs;
  for (const RunRecord& run : session.runs) runs.push_back(run_json(session, run));
  return {{"schema", 1},
          {"models", json::array(plan.models.begin(), plan.models.end())},
          {"warmup", session.warmup},
          {"notes", json::array(session.notes.begin(), session.notes.end())},
          {"interrupted", session.interrupted},
          {"started_at", session.started_at},
          {"url", session.first.url},
          {"against", session.against ? json::value(session.against->url) : json::value(nullptr)},
          {"dialect", name_of(plan.dialect)},
          {"requests", plan.requests},
          {"max_tokens", plan.max_tokens},
          {"seed", plan.seed},
          {"ignore_eos", plan.end_of_sequence == EndOfSequence::ignored},
          {"repeat", plan.repeat},
          {"prompts", prompts_json(plan.prompts)},
          {"start_state", text_or_null(session.start_state)},
          {"versions", versions_json(session)},
          {"hardware", hardware_json(session.machine)},
          {"runs", std::move(runs)},
          {"ratios", ratios_json(session)}};
}

}  // namespace werk::app::bench
