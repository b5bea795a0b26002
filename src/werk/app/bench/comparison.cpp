#include "werk/app/bench/comparison.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <boost/json/array.hpp>
#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>
#include <optional>

#include "werk/app/bench/report.hpp"
#include "werk/app/bench/statistics.hpp"
#include "werk/base/text.hpp"

namespace werk::app::bench {

namespace json = boost::json;

namespace {

constexpr double kLoadDifference = 0.5;  // of the load average, for each core

struct Condition {
  std::string_view pointer;
  std::string_view name;
};
constexpr std::array<Condition, 16> kConditions = {{
    {"/models", "models"},
    {"/dialect", "dialect"},
    {"/requests", "requests a run"},
    {"/max_tokens", "max tokens"},
    {"/ignore_eos", "ignoring the end of a sequence"},
    {"/seed", "seed"},
    {"/prompts/kind", "prompts"},
    {"/prompts/tokens", "tokens of a prompt"},
    {"/prompts/shared_prefix_tokens", "tokens that prompts share"},
    {"/prompts/sha256", "file of prompts"},
    {"/warmup", "warm-up"},
    {"/start_state", "warm or cold"},
    {"/versions/server", "server's version"},
    {"/versions/werk", "version that measured"},
    {"/hardware/cpu", "processor"},
    {"/hardware/cores", "cores"},
}};

const json::value* at(const json::value& page, std::string_view pointer) {
  boost::system::error_code error;
  return page.find_pointer(pointer, error);
}

std::optional<double> number_at(const json::value& page, std::string_view pointer) {
  const json::value* found = at(page, pointer);
  if (found == nullptr || !found->is_number()) return std::nullopt;
  return found->to_number<double>();
}

bool is_true(const json::value& page, std::string_view pointer) {
  const json::value* found = at(page, pointer);
  return found != nullptr && found->is_bool() && found->get_bool();
}

std::string shown(const json::value* value) {
  if (value == nullptr || value->is_null()) return "none";
  return printable(value->is_string() ? std::string(value->get_string()) : json::serialize(*value));
}

// "4", "2.5/s"; empty where it is neither.
std::string level_of(const json::value& run) {
  if (const auto callers = number_at(run, "/concurrency"))
    return name_of(Level{static_cast<std::uint32_t>(*callers), 0});
  if (const auto rate = number_at(run, "/rate")) return name_of(Level{0, *rate});
  return {};
}

// The runs that count of the file's first server.
std::vector<const json::value*> runs_of(const json::object& report) {
  std::vector<const json::value*> found;
  const json::value* runs = report.if_contains("runs");
  if (runs == nullptr || !runs->is_array()) return found;
  for (const json::value& run : runs->get_array()) {
    const json::value* side = at(run, "/side");
    const bool other = side != nullptr && side->is_string() && side->get_string() == "B";
    if (!other && !is_true(run, "/discarded") && !level_of(run).empty()) found.push_back(&run);
  }
  return found;
}

std::vector<std::string> levels_of(const json::object& report) {
  std::vector<std::string> levels;
  for (const json::value* run : runs_of(report)) {
    std::string level = level_of(*run);
    if (std::ranges::find(levels, level) == levels.end()) levels.push_back(std::move(level));
  }
  return levels;
}

struct Metric {
  std::string_view name;
  std::string_view pointer;
  bool is_time;
};
constexpr std::array<Metric, 5> kMetrics = {{
    {"tokens/s", "/aggregate_tokens_per_second", false},
    {"first token 50%", "/percentiles/ttft_seconds/p50", true},
    {"first token 95%", "/percentiles/ttft_seconds/p95", true},
    {"whole answer 50%", "/percentiles/total_seconds/p50", true},
    {"between tokens 50%", "/percentiles/inter_token_seconds/p50", true},
}};

Summary spread_of(const json::object& report, const std::string& level, const Metric& metric) {
  std::vector<Round> rounds;
  for (const json::value* run : runs_of(report)) {
    if (level_of(*run) != level) continue;
    if (const auto value = number_at(*run, metric.pointer)) rounds.push_back({*value, 1});
  }
  return summarize(rounds);
}

std::string value_text(const Metric& metric, double value) {
  return metric.is_time ? time_text(value) : number_text(value);
}

std::string spread_text(const Metric& metric, const Summary& spread) {
  if (spread.pairs == 0) return "-";
  if (spread.pairs == 1) return value_text(metric, spread.median);
  return fmt::format("{} ({}-{})", value_text(metric, spread.median),
                     value_text(metric, spread.low), value_text(metric, spread.high));
}

// How far the second lies from the first, and whether the runs' own spread explains it.
std::string verdict(const Summary& a, const Summary& b) {
  if (a.pairs == 0 || b.pairs == 0 || a.median <= 0) return "-";
  const std::string ratio = fmt::format("{:.3f}", b.median / a.median);
  if (a.pairs == 1 && b.pairs == 1) return ratio;
  const bool overlap = a.low <= b.high && b.low <= a.high;
  return ratio + (overlap ? " ~" : "");
}

void compare_loads(const json::object& a, const json::object& b, std::vector<std::string>& found) {
  const auto load_a = number_at(a, "/hardware/load_average_before/0");
  const auto load_b = number_at(b, "/hardware/load_average_before/0");
  const double cores = std::max(number_at(a, "/hardware/cores").value_or(1), 1.0);
  if (!load_a || !load_b) return;
  if (std::abs(*load_a - *load_b) > kLoadDifference * cores) {
    found.push_back(
        fmt::format("the load average before differs: {:.2f} and {:.2f} on {:.0f} cores", *load_a,
                    *load_b, cores));
  }
}

void look_at_soundness(const json::object& report, std::string_view which,
                       std::vector<std::string>& found) {
  if (is_true(report, "/interrupted")) found.push_back(fmt::format("{} was interrupted", which));
  double failures = 0;
  for (const json::value* run : runs_of(report))
    failures += number_at(*run, "/failed_requests").value_or(0);
  if (failures > 0) found.push_back(fmt::format("{} has {:.0f} failed requests", which, failures));
}

}  // namespace

Result<json::object> read_report(std::string_view text, const std::string& path) {
  boost::system::error_code error;
  json::value page = json::parse(json::string_view(text.data(), text.size()), error);
  const auto schema = error ? std::nullopt : number_at(page, "/schema");
  const json::value* runs = error ? nullptr : at(page, "/runs");
  if (schema != 1.0 || runs == nullptr || !runs->is_array()) {
    return fail(ErrorCode::invalid_request,
                fmt::format("{} holds no results of `werk bench --output`", path));
  }
  return std::move(page.get_object());
}

std::vector<std::string> differences(const json::object& a, const json::object& b) {
  std::vector<std::string> found;
  const json::value page_a(a);
  const json::value page_b(b);
  for (const Condition& condition : kConditions) {
    const json::value* in_a = at(page_a, condition.pointer);
    const json::value* in_b = at(page_b, condition.pointer);
    const bool same = in_a != nullptr && in_b != nullptr ? *in_a == *in_b : in_a == in_b;
    if (!same) {
      found.push_back(fmt::format("{}: {} and {}", condition.name, shown(in_a), shown(in_b)));
    }
  }
  compare_loads(a, b, found);
  const auto levels_a = levels_of(a);
  const auto levels_b = levels_of(b);
  if (levels_a != levels_b) {
    found.push_back(fmt::format("levels: {} and {}; what only one has is left out",
                                fmt::join(levels_a, " "), fmt::join(levels_b, " ")));
  }
  look_at_soundness(a, "A", found);
  look_at_soundness(b, "B", found);
  return found;
}

std::string comparison_of(const json::object& a, const json::object& b) {
  std::string text = fmt::format("A: {}, {}\nB: {}, {}\n", shown(a.if_contains("url")),
                                 shown(a.if_contains("started_at")), shown(b.if_contains("url")),
                                 shown(b.if_contains("started_at")));
  for (const std::string& difference : differences(a, b))
    text += fmt::format("differs: {}\n", difference);
  const auto levels_b = levels_of(b);
  bool repeated = false;
  for (const std::string& level : levels_of(a)) {
    if (std::ranges::find(levels_b, level) == levels_b.end()) continue;
    text +=
        fmt::format("\n{:<20}{:>24}{:>24}{:>12}\n",
                    level.ends_with("/s") ? level : level + (level == "1" ? " caller" : " callers"),
                    "A", "B", "B / A");
    for (const Metric& metric : kMetrics) {
      const Summary in_a = spread_of(a, level, metric);
      const Summary in_b = spread_of(b, level, metric);
      repeated = repeated || in_a.pairs > 1 || in_b.pairs > 1;
      text += fmt::format("{:<20}{:>24}{:>24}{:>12}\n", metric.name, spread_text(metric, in_a),
                          spread_text(metric, in_b), verdict(in_a, in_b));
    }
  }
  text += repeated
              ? "\nMedian of the runs and their range; ~: the ranges overlap, so the runs' own "
                "spread\nexplains the difference.\n"
              : "\nOne run each: how much a run differs from the next one isn't known "
                "(--repeat).\n";
  return text;
}

}  // namespace werk::app::bench
