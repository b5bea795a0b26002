// bench_engine: P1. Output tokens a second of a real engine with a real model at 1, 2, 4 and 8
// streaming callers: through the node in either dialect, and to the same process over its own
// socket. The engine gets one thread, so that two cores hold it, the node and the client; with a
// thread per core the three would fight and the figure would be noise.
#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <vector>

#include "bench/support/main.hpp"
#include "bench/support/programs.hpp"
#include "bench/support/report.hpp"
#include "bench/support/stats.hpp"
#include "bench/support/token_rate.hpp"

namespace werk::bench {
namespace {

constexpr std::uint64_t kTokens = 64;

// The node's side in one dialect.
struct Through {
  Dialect dialect;
  TokenRate way;
  double share_percent = 0;  // of the last slice: the node's processor time in the engine's
  std::vector<Round> ratio;
  std::vector<Round> share;
};

void report_through(const Through& through, std::size_t callers, double direct_rate) {
  const bool messages = through.dialect == Dialect::messages;
  const std::string which =
      fmt::format("{} caller{}{}", callers, callers == 1 ? "" : "s", messages ? ", Messages" : "");
  report({"P1", "tokens/s, Werk / direct: " + which, "", summarize(through.ratio), Better::higher,
          messages ? 0.97 : 0.98, 0.99, fmt::format("direct {:.1f} tokens/s", direct_rate)});
  report({"P1", "node's share of the engine's processor time: " + which, "%",
          summarize(through.share), Better::none, 0, 1, ""});
}

void measure(const Setting& setting, const Node& node, const EngineHandle& engine,
             std::size_t callers) {
  // About as many tokens at every level, so that a slice is long beside its ragged end.
  const std::uint64_t each = std::max<std::uint64_t>((setting.quick ? 2 : 4) / callers, 1);
  const auto plan = [&](Dialect dialect) {
    return StoryPlan{dialect, kTokens, callers, each, R"("return_progress":true)"};
  };
  const StoryPlace place{node.endpoint(), setting.model};
  TokenRate direct({engine.endpoint(), engine.alias, engine.key}, plan(Dialect::openai));
  Through openai{Dialect::openai, {place, plan(Dialect::openai)}, 0, {}, {}};
  Through messages{Dialect::messages, {place, plan(Dialect::messages)}, 0, {}, {}};
  const auto side = [&](Through& through) {
    return [&] {
      const double node_before = cpu_seconds(node.pid());
      const double engine_before = cpu_seconds(engine.pid);
      through.way.measure();
      const double node_seconds = cpu_seconds(node.pid()) - node_before;
      through.share_percent = 100 * node_seconds / (cpu_seconds(engine.pid) - engine_before);
    };
  };
  std::vector<double> direct_rates;
  alternate(setting.rounds(), {[&] { direct.measure(); }, side(openai), side(messages)}, [&] {
    for (Through* through : {&openai, &messages}) {
      through->ratio.push_back({through->way.rate / direct.rate, 1 / direct.rate});
      through->share.push_back({through->share_percent, 1 / direct.rate});
    }
    direct_rates.push_back(direct.rate);
  });
  for (const Through* through : {&openai, &messages}) {
    report_through(*through, callers, median(direct_rates));
  }
}

void run(const Goals&) {
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
  load_model(node.endpoint(), setting.model);
  const EngineHandle engine = node.engine();
  for (const std::size_t callers : {1, 2, 4, 8}) measure(setting, node, engine, callers);
}

}  // namespace
}  // namespace werk::bench

int main(int count, char** words) {
  return werk::bench::run_main("bench_engine", count, words, werk::bench::run);
}
