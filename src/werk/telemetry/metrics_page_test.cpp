#include "werk/telemetry/metrics_page.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <set>

#include "werk/telemetry/catalogue.hpp"

namespace werk::telemetry {
namespace {

using namespace std::chrono_literals;

struct CallOf {
  std::string model = "small";
  Outcome outcome = Outcome::served;
  std::optional<ErrorCode> cause = std::nullopt;
  CallPhase phase = CallPhase::generating;
};

void count(Metrics& metrics, const CallOf& call) {
  Histogram pieces = inter_token_histogram();
  pieces.observe(0.02, 3);
  metrics.count(EndedCall{Dialect::openai, "/v1/chat/completions", call.model, call.outcome,
                          call.cause ? 503 : 200, call.cause, call.phase, 2s, 500ms,
                          TokenCounts{100, 60, 4}, pieces, true});
}

std::size_t lines_with(const std::string& page, std::string_view text) {
  std::size_t found = 0;
  for (std::size_t at = page.find(text); at != page.npos; at = page.find(text, at + 1)) ++found;
  return found;
}

void expect_line(const std::string& page, const std::string& line) {
  EXPECT_NE(page.find(line + "\n"), std::string::npos) << line << " is not in\n" << page;
}

TEST(MetricsPage, ShowsCallsByEveryLabelAndTheirTimes) {
  Metrics metrics;
  count(metrics, {});
  count(metrics, {});
  count(metrics, {.outcome = Outcome::failed, .cause = ErrorCode::capacity});
  const std::string page = metrics_page(metrics, {});
  const std::string labels = R"(dialect="openai",route="/v1/chat/completions",model="small")";
  expect_line(page,
              fmt::format(R"(werk_calls_total{{{},outcome="served",status="2xx",cause="none"}} 2)",
                          labels));
  expect_line(
      page,
      fmt::format(R"(werk_calls_total{{{},outcome="failed",status="5xx",cause="capacity"}} 1)",
                  labels));
  expect_line(page, R"(werk_call_seconds_count{model="small"} 3)");
  expect_line(page, R"(werk_call_seconds_sum{model="small"} 6)");
  expect_line(page, R"(werk_call_first_byte_seconds_bucket{model="small",le="0.25"} 0)");
  expect_line(page, R"(werk_call_first_byte_seconds_bucket{model="small",le="0.5"} 3)");
  expect_line(page, R"(werk_call_inter_token_seconds_count{model="small"} 9)");
  expect_line(page, R"(werk_prompt_tokens_total{model="small"} 300)");
  expect_line(page, R"(werk_prompt_tokens_cached_total{model="small"} 180)");
  expect_line(page, R"(werk_output_tokens_total{model="small"} 12)");
}

TEST(MetricsPage, ThousandsOfNamesNobodyInstalledAreOneSeries) {
  Metrics metrics;
  for (int i = 0; i < 5000; ++i) count(metrics, {.model = ""});
  const std::string page = metrics_page(metrics, {});
  EXPECT_EQ(lines_with(page, "\nwerk_calls_total{"), 1u);
  EXPECT_NE(page.find("model=\"other\""), std::string::npos);
}

TEST(MetricsPage, SeriesOfModelsThatWereRemovedGo) {
  Metrics metrics;
  for (int i = 0; i < 1000; ++i) count(metrics, {.model = fmt::format("model-{}", i)});
  count(metrics, {.model = ""});
  EXPECT_EQ(metrics.models().size(), 1001u);
  metrics.keep_models({"model-7", "never-called"});
  EXPECT_EQ(metrics.models().size(), 2u);
  const std::string page = metrics_page(metrics, {});
  EXPECT_EQ(lines_with(page, "\nwerk_calls_total{"), 2u);
  EXPECT_EQ(page.find("model-8"), std::string::npos);
}

TEST(MetricsPage, CancelledCallsAreCountedByWhatTheyWereAt) {
  Metrics metrics;
  count(metrics, {.outcome = Outcome::cancelled, .phase = CallPhase::slot});
  count(metrics, {.outcome = Outcome::cancelled, .phase = CallPhase::prompt});
  count(metrics, {.outcome = Outcome::cancelled, .phase = CallPhase::prompt});
  const std::string page = metrics_page(metrics, {});
  expect_line(page, R"(werk_calls_cancelled_total{phase="slot"} 1)");
  expect_line(page, R"(werk_calls_cancelled_total{phase="prompt"} 2)");
}

TEST(MetricsPage, ShowsWhatIsSoNow) {
  Gauges gauges;
  gauges.version = "1.2.3";
  gauges.waiting = {{"slot", 3}};
  gauges.runtime_states = {{"ready", 2}};
  gauges.runtimes[{"llama-cpu", "small"}] = {8, 5, 1024};
  gauges.runtimes[{"remote", "far"}] = {std::nullopt, 1, std::nullopt};
  gauges.loop_lag_seconds = 0.25;
  gauges.ready = true;
  const std::string page = metrics_page({}, gauges);
  expect_line(page, R"(werk_calls_waiting{cause="slot"} 3)");
  expect_line(page, R"(werk_runtimes{state="ready"} 2)");
  expect_line(page, R"(werk_slots{engine="llama-cpu",model="small"} 8)");
  expect_line(page, R"(werk_slots_busy{engine="remote",model="far"} 1)");
  expect_line(page, R"(werk_engine_resident_memory_bytes{engine="llama-cpu",model="small"} 1024)");
  EXPECT_EQ(lines_with(page, "werk_engine_resident_memory_bytes{"), 1u);
  expect_line(page, "werk_loop_lag_seconds 0.25");
  expect_line(page, "werk_ready 1");
  expect_line(page, R"(werk_build_info{version="1.2.3"} 1)");
}

TEST(MetricsPage, AModelsNameMayHoldWhatLabelsMustEscape) {
  Metrics metrics;
  count(metrics, {.model = "a\"b\\c\nd"});
  EXPECT_NE(metrics_page(metrics, {}).find(R"(model="a\"b\\c\nd")"), std::string::npos);
}

// docs/operations.md has a table whose rows are these families, one for each, and no others.
TEST(MetricsPage, TheDocumentsNameEveryFamilyWithItsKindAndLabels) {
  std::ifstream file(std::string(WERK_DOCUMENTS) + "/operations.md");
  ASSERT_TRUE(file.is_open());
  std::multiset<std::string> documented;
  for (std::string line; std::getline(file, line);) {
    const bool row = line.starts_with("| `werk_") || line.starts_with("| `process_");
    if (!row) continue;
    // The first three cells: name, kind, labels.
    std::size_t end = 0;
    for (int i = 0; i < 4; ++i) end = line.find('|', end) + 1;
    documented.insert(line.substr(0, end));
  }
  std::multiset<std::string> known;
  for (const MetricInfo& info : metric_catalogue()) {
    const std::string labels = info.labels.empty() ? "" : fmt::format("`{}`", info.labels);
    known.insert(fmt::format("| `{}` | {} | {} |", info.name, name_of(info.kind), labels));
  }
  EXPECT_EQ(documented, known);
}

}  // namespace
}  // namespace werk::telemetry
