#include "werk/app/bench/record.hpp"

#include <algorithm>
#include <boost/json/array.hpp>

namespace werk::app::bench {

namespace json = boost::json;

namespace {

const json::array* runtimes_in(const json::object& page) {
  const json::value* runtimes = page.if_contains("runtimes");
  return runtimes != nullptr && runtimes->is_array() ? &runtimes->get_array() : nullptr;
}

bool says(const json::object& object, std::string_view member, std::string_view text) {
  const json::value* value = object.if_contains(member);
  return value != nullptr && value->is_string() && std::string_view(value->get_string()) == text;
}

bool same_level(const Level& a, const Level& b) {
  return a.callers == b.callers && a.rate == b.rate;
}

// A ratio of two figures that both were measured.
void add_ratio(std::vector<Round>& rounds, std::optional<double> first,
               std::optional<double> against, double cost) {
  if (first && against && *against > 0) rounds.push_back({*first / *against, cost});
}

std::optional<double> p50_of(const std::optional<Percentiles>& found) {
  return found ? std::optional(found->p50) : std::nullopt;
}

const RunRecord* partner_of(const Session& session, const RunRecord& run) {
  for (const RunRecord& other : session.runs) {
    if (other.side == Side::against && other.repeat == run.repeat && !other.discarded &&
        same_level(other.level, run.level))
      return &other;
  }
  return nullptr;
}

}  // namespace

RunFigures figures_of(const RunRecord& run) {
  RunFigures figures;
  std::vector<double> ttft;
  std::vector<double> total;
  std::vector<double> rates;
  std::uint64_t tokens = 0;
  bool counted = true;
  for (const RequestRecord& request : run.requests) {
    if (!request.ended) continue;
    if (!request.error.empty()) {
      ++figures.failed;
      continue;
    }
    ++figures.succeeded;
    total.push_back(request.elapsed_seconds);
    if (request.ttft_seconds) ttft.push_back(*request.ttft_seconds);
    if (!request.completion_tokens) {
      counted = false;
      continue;
    }
    tokens += *request.completion_tokens;
    if (request.elapsed_seconds > 0)
      rates.push_back(static_cast<double>(*request.completion_tokens) / request.elapsed_seconds);
  }
  if (figures.succeeded > 0 && counted) {
    figures.output_tokens = tokens;
    if (run.elapsed_seconds > 0)
      figures.tokens_per_second = static_cast<double>(tokens) / run.elapsed_seconds;
    if (!rates.empty()) figures.request_tokens_per_second = median(std::move(rates));
  }
  figures.ttft = percentiles_of(std::move(ttft));
  figures.total = percentiles_of(std::move(total));
  figures.inter_token = percentiles_of(run.inter_token_seconds);
  return figures;
}

std::vector<LevelRatios> ratios_of(const Session& session) {
  std::vector<LevelRatios> all;
  if (!session.against) return all;
  for (const Level& level : session.plan.levels) {
    std::vector<Round> tokens;
    std::vector<Round> ttft;
    std::vector<Round> total;
    for (const RunRecord& run : session.runs) {
      if (run.side != Side::first || run.discarded || !same_level(run.level, level)) continue;
      const RunRecord* partner = partner_of(session, run);
      if (partner == nullptr) continue;
      const RunFigures first = figures_of(run);
      const RunFigures against = figures_of(*partner);
      const double cost = partner->elapsed_seconds;
      add_ratio(tokens, first.tokens_per_second, against.tokens_per_second, cost);
      add_ratio(ttft, p50_of(first.ttft), p50_of(against.ttft), cost);
      add_ratio(total, p50_of(first.total), p50_of(against.total), cost);
    }
    all.push_back({level, summarize(tokens), summarize(ttft), summarize(total)});
  }
  return all;
}

std::size_t untold_waits(const Session& session) {
  std::size_t untold = 0;
  for (const RunRecord& run : session.runs) {
    if (!run.observability_after) continue;
    untold += static_cast<std::size_t>(
        std::ranges::count_if(run.requests, [](const RequestRecord& request) {
          return request.ended && request.error.empty() && !request.queue_seconds;
        }));
  }
  return untold;
}

std::uint32_t failures_of(const Session& session) {
  std::uint32_t failures = 0;
  for (const RunRecord& run : session.runs) failures += figures_of(run).failed;
  return failures;
}

std::optional<std::uint32_t> processes_in(const json::object& page) {
  const json::array* runtimes = runtimes_in(page);
  if (runtimes == nullptr) return std::nullopt;
  std::uint32_t count = 0;
  for (const json::value& runtime : *runtimes) {
    const json::value* pid =
        runtime.is_object() ? runtime.get_object().if_contains("pid") : nullptr;
    if (pid != nullptr && pid->is_number() && pid->to_number<std::int64_t>() > 0) ++count;
  }
  return count;
}

std::string start_state_of(const json::object& before, const json::object& after,
                           const std::vector<std::string>& models) {
  const auto is_in = [](const json::object& page, const std::string& model) {
    const json::array* runtimes = runtimes_in(page);
    return runtimes != nullptr && std::ranges::any_of(*runtimes, [&](const json::value& runtime) {
             return runtime.is_object() && says(runtime.get_object(), "model", model) &&
                    says(runtime.get_object(), "state", "ready");
           });
  };
  std::size_t loaded = 0;
  for (const std::string& model : models) {
    if (is_in(before, model)) {
      ++loaded;
    } else if (!is_in(after, model)) {
      return {};
    }
  }
  if (loaded == 0) return "cold";
  return loaded == models.size() ? "warm" : "partly warm";
}

}  // namespace werk::app::bench
