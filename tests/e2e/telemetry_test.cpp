// What the node tells of itself while it works: the page for Prometheus, the events, readiness.
#include <gtest/gtest.h>

#include <csignal>
#include <cstdlib>
#include <fstream>
#include <optional>

#include "tests/e2e/chat_answer.hpp"
#include "tests/e2e/metrics_page.hpp"
#include "tests/e2e/test_node.hpp"

namespace werk::test {
namespace {

namespace json = boost::json;

MetricsPage metrics_of(TestNode& node) { return MetricsPage(node.get("/metrics").whole_body()); }

// Six callers on two models, each third call leaves after its first token; what the clients saw.
struct Seen {
  int whole = 0;
  int left = 0;
};
Seen load(TestNode& node, int turns) {
  const std::vector<int> whole = run_callers(6, [&](std::size_t caller) {
    int good = 0;
    for (int turn = 0; turn < turns; ++turn) {
      HttpCall call = node.chat(caller % 2 == 0 ? "a" : "b", R"("stream":true)");
      if (turn % 3 == 2) {
        call.body_until(R"("content":")");
        continue;
      }
      good += read_stream(call.whole_body()).done ? 1 : 0;
    }
    return good;
  });
  Seen seen;
  for (const int count : whole) seen.whole += count;
  seen.left = 6 * (turns / 3);
  return seen;
}

TEST(Telemetry, TheMetricsAccountForEveryCallThatClientsMade) {
  TestNode node({.models = {{"a"}, {"b"}},
                 .engine = {{"reply", {{"tokens", 40}, {"pace_us", 2'000}}}},
                 .arguments = {"--parallel", "2"}});
  const Seen seen = load(node, 6);
  EXPECT_EQ(seen.whole, 24);
  for (int i = 0; i < 50; ++i) EXPECT_EQ(node.chat("nobody-" + std::to_string(i)).status(), 404);
  node.await_observability(
      [](const json::object& page) { return number_in(page, "calls", "active") == 0; });
  const MetricsPage page = metrics_of(node);
  EXPECT_EQ(page.sum("werk_calls_total", {R"(outcome="served")"}), seen.whole);
  EXPECT_EQ(page.sum("werk_calls_total", {R"(outcome="cancelled")"}), seen.left);
  EXPECT_EQ(page.sum("werk_calls_total", {R"(model="other")"}), 50);
  EXPECT_EQ(page.sum("werk_calls_total"), seen.whole + seen.left + 50);
  EXPECT_EQ(page.sum("werk_calls_cancelled_total", {R"(phase="generating")"}), seen.left);
  EXPECT_EQ(page.sum("werk_call_seconds_count"), seen.whole + seen.left + 50);
  EXPECT_EQ(page.sum("werk_runtime_starts_total"), 2);
  EXPECT_EQ(page.sum("werk_slots"), 4);
  EXPECT_EQ(page.sum("werk_calls_active"), 0);
  EXPECT_GT(page.sum("werk_output_tokens_total"), 24.0 * 40);
  EXPECT_GT(page.sum("werk_engine_resident_memory_bytes", {R"(model="a")"}), 100'000);
  EXPECT_EQ(page.series("werk_calls_total"), 5u);
}

// The status of promtool on the page; none where it isn't installed.
std::optional<int> promtool_status(const std::string& page, const std::string& folder) {
  const char* named = std::getenv("WERK_TEST_PROMTOOL");
  const std::string promtool = named != nullptr ? named : "promtool";
  const std::string found = "command -v '" + promtool + "' > /dev/null";
  if (std::system(found.c_str()) != 0) return std::nullopt;
  const std::string file = folder + "/page.txt";
  std::ofstream(file) << page;
  const std::string check = "'" + promtool + "' check metrics < '" + file + "' 1>&2";
  return std::system(check.c_str());
}

TEST(Telemetry, PromtoolFindsNothingAmissInThePageOfANodeUnderLoad) {
  TestNode node({.models = {{"a"}, {"b"}}, .engine = {{"reply", {{"tokens", 5}}}}});
  load(node, 3);
  node.engines().set_settings({{"start", "exit"}});
  HttpCall unload(node.port(), "POST", "/werk/v1/models/a/unload?now");
  EXPECT_EQ(unload.status(), 200);
  EXPECT_EQ(node.chat("a").status(), 503);
  const std::string page = node.get("/metrics").whole_body();
  EXPECT_EQ(MetricsPage(page).sum("werk_runtime_start_failures_total"), 1);
  const std::optional<int> status = promtool_status(page, node.home().string());
  if (!status) GTEST_SKIP() << "promtool (Debian: prometheus) is not installed";
  EXPECT_EQ(*status, 0) << page;
}

TEST(Telemetry, FollowersSeeAStartACallADeathAndAnUnloadUntilTheNodeEnds) {
  TestNode node({.models = {{"a"}}});
  HttpCall follower = node.get("/werk/v1/events");
  follower.body_until("events of this node");
  EXPECT_EQ(node.chat("a").status(), 200);
  follower.body_until("event: call.finished");
  node.kill_engine(0);
  const std::string& seen = follower.body_until("event: runtime.died");
  for (const std::string_view event :
       {"runtime.starting", "runtime.ready", "call.admitted", "call.finished", "runtime.died"})
    EXPECT_NE(seen.find(event), std::string::npos) << event << " is not in\n" << seen;
  EXPECT_EQ(node.chat("a").status(), 200);
  HttpCall unload(node.port(), "POST", "/werk/v1/models/a/unload");
  EXPECT_EQ(unload.status(), 200);
  follower.body_until("event: runtime.unloaded");
  node.process().signal(SIGTERM);
  follower.whole_body();
  EXPECT_EQ(follower.end(), BodyEnd::proper);
  EXPECT_EQ(node.process().wait_exit(), 0);
}

TEST(Telemetry, AStartWithoutProgressIsNotReadyButAlive) {
  TestNode node({.engine = {{"start", "hold"}}, .arguments = {"--start-timeout", "60s"}});
  EXPECT_EQ(node.get("/readyz").status(), 200);
  HttpCall call = node.chat("a");
  node.await_state("a", "starting");
  EXPECT_EQ(node.get("/readyz").status(), 200);
  node.start_again({"--start-timeout", "2s"});
  HttpCall again = node.chat("a");
  const json::object page = node.await_observability([](const json::object& seen) {
    return !seen.at("node").at("ready").as_bool() || number_in(seen, "calls", "failed") > 0;
  });
  EXPECT_EQ(number_in(page, "calls", "failed"), 0u) << "half of the limit comes before all of it";
  EXPECT_NE(page.at("node").at("not_ready").as_string().find("no progress"), json::string::npos);
  EXPECT_EQ(node.get("/livez").status(), 200);
}

TEST(Telemetry, TheObservabilityPageShowsWhatEachCallIsAt) {
  TestNode node({.models = {{"a"}},
                 .engine = {{"reply", {{"tokens", 10}, {"gated", true}}}},
                 .arguments = {"--parallel", "1"}});
  HttpCall runs = node.chat("a", R"("stream":true)");
  const EngineEvent generation = node.generation();
  node.engines().step(generation.engine, generation.request(), 3);
  runs.body_until(R"("content":")");
  HttpCall waits = node.chat("a", R"("stream":true)");
  node.await_waiting(1);
  const json::object page = node.await_observability([](const json::object& seen) {
    const json::array& calls = seen.at("active_calls").as_array();
    return calls.size() == 2 && calls[0].at("output_tokens").to_number<int>() > 0;
  });
  const json::array& calls = page.at("active_calls").as_array();
  EXPECT_EQ(calls[0].at("phase").as_string(), "generating");
  EXPECT_EQ(calls[1].at("phase").as_string(), "slot");
  EXPECT_EQ(calls[0].at("stream").as_bool(), true);
  EXPECT_TRUE(calls[0].at("client").as_string().starts_with("127.0.0.1"));
  const json::object runtime = runtime_of(page, "a");
  EXPECT_GT(runtime.at("memory_bytes").to_number<std::uint64_t>(), 100'000u);
  EXPECT_TRUE(runtime.at("output_tokens_per_second").is_number());
  EXPECT_TRUE(runtime.at("load_seconds").is_number());
  EXPECT_GT(number_in(page, "node", "memory_bytes"), 1'000'000u);
  EXPECT_GE(number_in(page, "node", "connections"), 2u);
}

}  // namespace
}  // namespace werk::test
