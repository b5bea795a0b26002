#include "werk/app/bench/comparison.hpp"

#include <gtest/gtest.h>

#include <boost/json/array.hpp>
#include <boost/json/serialize.hpp>

#include "werk/app/bench/report.hpp"

namespace werk::app::bench {
namespace {

namespace json = boost::json;

RunRecord run(std::uint32_t callers, std::uint32_t repeat, double elapsed) {
  RunRecord made;
  made.level = {callers, 0};
  made.repeat = repeat;
  made.elapsed_seconds = elapsed;
  RequestRecord request;
  request.elapsed_seconds = elapsed;
  request.ttft_seconds = elapsed / 2;
  request.completion_tokens = 100;
  request.ended = true;
  made.requests = {request};
  return made;
}

Session session(std::vector<RunRecord> runs) {
  Session made;
  made.plan.models = {"a"};
  made.plan.requests = 1;
  made.first = {"http://one", "werk 1"};
  made.started_at = "2026-01-02T03:04:05Z";
  made.machine = {"cpu", 2, 1000, {0.1, 0.1, 0.1}, {}};
  made.runs = std::move(runs);
  return made;
}

TEST(Comparison, EqualConditionsDifferInNothing) {
  const json::object report = report_of(session({run(1, 0, 1)}));
  EXPECT_TRUE(differences(report, report).empty());
}

TEST(Comparison, WarnsOfEveryConditionThatDiffers) {
  const Session base = session({run(1, 0, 1)});
  const auto warns = [&](std::string_view of, const auto& change) {
    Session other = base;
    change(other);
    const auto found = differences(report_of(base), report_of(other));
    ASSERT_EQ(found.size(), 1u) << of;
    EXPECT_NE(found[0].find(of), std::string::npos) << found[0];
  };
  warns("models", [](Session& s) { s.plan.models.emplace_back("b"); });
  warns("seed", [](Session& s) { s.plan.seed = 2; });
  warns("max tokens", [](Session& s) { s.plan.max_tokens = 2; });
  warns("prompts", [](Session& s) { s.plan.prompts.kind = PromptKind::file; });
  warns("file of prompts", [](Session& s) { s.plan.prompts.digest = "d"; });
  warns("dialect", [](Session& s) { s.plan.dialect = Dialect::anthropic; });
  warns("warm-up", [](Session& s) { s.warmup = true; });
  warns("warm or cold", [](Session& s) { s.start_state = "cold"; });
  warns("version", [](Session& s) { s.first.version = "werk 2"; });
  warns("version", [](Session& s) { s.werk_version = "werk 2"; });
  warns("processor", [](Session& s) { s.machine.cpu = "other"; });
  warns("cores", [](Session& s) { s.machine.cores = 4; });
  warns("load average", [](Session& s) { s.machine.load_before = {1.5}; });
  warns("levels", [](Session& s) { s.runs[0].level.callers = 2; });
  warns("interrupted", [](Session& s) { s.interrupted = true; });
  warns("failed", [](Session& s) { s.runs[0].requests[0].error = "no"; });
}

TEST(Comparison, ShowsTheSpreadOfRepeatedRunsAndWhetherItExplainsTheDifference) {
  const json::object a = report_of(session({run(4, 0, 1), run(4, 1, 2), run(4, 2, 4)}));
  const json::object slower = report_of(session({run(4, 0, 3), run(4, 1, 3.5)}));
  const std::string text = comparison_of(a, slower);
  EXPECT_NE(text.find("4 callers"), std::string::npos) << text;
  EXPECT_NE(text.find("50.0 (25.0-100)"), std::string::npos) << text;
  EXPECT_NE(text.find(" ~\n"), std::string::npos) << text;
  const json::object far = report_of(session({run(4, 0, 30), run(4, 1, 35)}));
  EXPECT_EQ(comparison_of(a, far).find(" ~\n"), std::string::npos);
}

TEST(Comparison, OneRunEachSaysThatItsSpreadIsNotKnown) {
  const json::object a = report_of(session({run(1, 0, 1)}));
  const json::object b = report_of(session({run(1, 0, 2)}));
  const std::string text = comparison_of(a, b);
  EXPECT_NE(text.find("0.500"), std::string::npos) << text;
  EXPECT_NE(text.find("--repeat"), std::string::npos) << text;
}

TEST(Comparison, AFileOfSomethingElseIsRefusedByName) {
  for (const std::string_view text :
       {"", "[]", "{}", R"({"schema":1})", R"({"schema":2,"runs":[]})"}) {
    const auto report = read_report(text, "x.json");
    ASSERT_FALSE(report) << text;
    EXPECT_TRUE(report.error().message.starts_with("x.json ")) << report.error().message;
  }
  EXPECT_TRUE(read_report(json::serialize(report_of(session({}))), "x.json"));
}

}  // namespace
}  // namespace werk::app::bench
