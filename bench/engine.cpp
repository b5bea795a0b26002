// bench_engine: P1 (OpenAI half). Output tokens a second of a real engine with a real model at 1,
// 2, 4 and 8 streaming callers: through the node, and to the same process over its own socket.
// The engine gets one thread, so that two cores hold it, the node and the client; with a thread
// per core the three would fight and the figure would be noise.
#include <fmt/format.h>

#include <algorithm>
#include <exception>
#include <string>
#include <vector>

#include "bench/support/load.hpp"
#include "bench/support/mock_control.hpp"
#include "bench/support/programs.hpp"
#include "bench/support/report.hpp"
#include "bench/support/stats.hpp"

namespace werk::bench {
namespace {

constexpr std::string_view kTarget = "/v1/chat/completions";
constexpr std::uint64_t kTokens = 64;

std::string real_body(std::string_view model) {
  return fmt::format(
      R"({{"model":"{}","messages":[{{"role":"user","content":"Tell a story about the sea."}}],)"
      R"("temperature":0,"seed":7,"max_tokens":{},"ignore_eos":true,"stream":true,)"
      R"("stream_options":{{"include_usage":true}},"return_progress":true}})",
      model, kTokens);
}

LoadPlan plan_for(const Endpoint& endpoint, std::string_view model, std::string_view key,
                  std::size_t callers) {
  LoadPlan plan;
  plan.endpoint = endpoint;
  plan.connections = callers;
  plan.requests = {http_request("POST", kTarget, real_body(model), key)};
  return plan;
}

struct Cost {
  double node_seconds = 0;
  double engine_seconds = 0;
};

void measure(const Setting& setting, const Node& node, const EngineHandle& engine,
             std::size_t callers) {
  Load direct(plan_for(engine.endpoint(), engine.alias, engine.key, callers));
  Load through(plan_for(node.endpoint(), setting.model, "", callers));
  // About as many tokens at every level, so that a slice is long beside its ragged end.
  const std::uint64_t each = std::max<std::uint64_t>((setting.quick ? 2 : 4) / callers, 1);
  const auto rate = [each, callers](Load& load) {
    const LoadResult result = load.run_times(each);
    if (result.failures > 0) throw std::runtime_error("an answer failed: " + result.first_failure);
    if (result.tokens != each * callers * kTokens) throw std::runtime_error("tokens are missing");
    return static_cast<double>(result.tokens) / result.seconds;
  };
  double direct_rate = 0;
  double node_rate = 0;
  Cost cost;
  std::vector<Round> ratio;
  std::vector<Round> share;
  std::vector<double> direct_rates;
  const auto through_node = [&] {
    const double node_before = cpu_seconds(node.pid());
    const double engine_before = cpu_seconds(engine.pid);
    node_rate = rate(through);
    cost.node_seconds = cpu_seconds(node.pid()) - node_before;
    cost.engine_seconds = cpu_seconds(engine.pid) - engine_before;
  };
  alternate(setting.rounds(), {[&] { direct_rate = rate(direct); }, through_node}, [&] {
    ratio.push_back({node_rate / direct_rate, 1 / direct_rate});
    share.push_back({100 * cost.node_seconds / cost.engine_seconds, 1 / direct_rate});
    direct_rates.push_back(direct_rate);
  });
  const std::string callers_text = fmt::format("{} caller{}", callers, callers == 1 ? "" : "s");
  report({"P1", "tokens/s, Werk / direct: " + callers_text, "", summarize(ratio), Better::higher,
          0.98, 0.99, fmt::format("direct {:.1f} tokens/s", median(direct_rates))});
  report({"P1", "node's share of the engine's processor time: " + callers_text, "%",
          summarize(share), Better::none, 0, 1, ""});
}

int run() {
  const Setting setting = read_setting();
  const Folder folder;
  std::vector<std::string> environment;
  if (!setting.real_engine.empty()) {
    environment.push_back("WERK_LLAMA_SERVER=" + setting.real_engine);
  }
  const Node node(setting, setting.home,
                  {"--backend", "llama-cpu", "--parallel", "8", "--ctx-size", "1024", "--threads",
                   "1", "--threads-batch", "1", "--model", setting.model, "--log-level", "warn"},
                  environment, folder / "node.log");
  const std::string body = real_body(setting.model);
  const Answer first = ask(node.endpoint(), http_request("POST", kTarget, body));
  if (first.status != 200) throw std::runtime_error("the first answer failed: " + first.body);
  const EngineHandle engine = node.engine();
  for (const std::size_t callers : {1, 2, 4, 8}) measure(setting, node, engine, callers);
  return 0;
}

}  // namespace
}  // namespace werk::bench

int main() {
  try {
    return werk::bench::run();
  } catch (const std::exception& error) {
    fmt::print(stderr, "bench_engine: {}\n", error.what());
    return 1;
  }
}
