// bench_active: P13. One, two and three models active at once on the processor: a node to which
// nothing about threads was said, beside nodes that were told every number of threads this machine
// has room for. The best of those is what hand-tuning for that number of models gives.
#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "bench/support/load.hpp"
#include "bench/support/main.hpp"
#include "bench/support/programs.hpp"
#include "bench/support/report.hpp"
#include "bench/support/stats.hpp"

namespace werk::bench {
namespace {

using Words = std::vector<std::string>;

constexpr std::uint64_t kTokens = 96;
const Words kModels{"r0", "r1", "r2"};

std::string request_for(std::string_view model) {
  const std::string body = fmt::format(
      R"({{"model":"{}","messages":[{{"role":"user","content":"Tell a story about the sea."}}],)"
      R"("temperature":0,"seed":7,"ignore_eos":true,"max_tokens":{},"stream":true,)"
      R"("stream_options":{{"include_usage":true}}}})",
      model, kTokens);
  return http_request("POST", target_of(Dialect::openai), body, "");
}

// A node with its three models loaded; idle engines cost nothing.
struct Side {
  Side(const Setting& setting, const Folder& folder, const std::string& engine, std::size_t threads)
      : name(threads == 0 ? "untold" : fmt::format("--threads {}", threads)) {
    Words words{"--backend", "llama-cpu", "--ctx-size", "1024", "--log-level", "warn"};
    if (threads > 0) words.insert(words.end(), {"--threads", std::to_string(threads)});
    const std::string home = fmt::format("home{}", threads);
    node =
        std::make_unique<Node>(setting, folder / home, words, Words{"WERK_LLAMA_SERVER=" + engine},
                               folder / fmt::format("node{}.log", threads));
    for (const std::string& model : kModels) {
      const Answer answer = ask(node->endpoint(), request_for(model));
      if (answer.status != 200) throw std::runtime_error("a model failed: " + answer.body);
    }
  }

  void prepare(std::size_t active) {
    LoadPlan plan;
    for (std::size_t i = 0; i < active; ++i)
      plan.clients.push_back({node->endpoint(), {{Dialect::openai, request_for(kModels[i])}}});
    load = std::make_unique<Load>(std::move(plan));
    rates.clear();
  }
  void measure(std::chrono::milliseconds length) {
    const LoadResult result = load->run_for(length);
    if (result.failures > 0) throw std::runtime_error("an answer failed: " + result.first_failure);
    rate = static_cast<double>(result.tokens) / result.seconds;
  }

  std::string name;
  std::unique_ptr<Node> node;
  std::unique_ptr<Load> load;
  double rate = 0;  // of the last slice
  std::vector<double> rates;
};

void measure(const Setting& setting, std::deque<Side>& sides, std::size_t active) {
  const std::chrono::seconds slice(setting.quick ? 3 : 6);
  for (Side& side : sides) side.prepare(active);
  std::vector<std::function<void()>> turns;
  for (Side& side : sides) turns.emplace_back([&side, slice] { side.measure(slice); });
  alternate(setting.rounds(), turns, [&] {
    for (Side& side : sides) side.rates.push_back(side.rate);
  });
  // Hand-tuning is choosing once for this number, not anew in each round.
  const auto best = std::max_element(
      sides.begin() + 1, sides.end(),
      [](const Side& a, const Side& b) { return median(a.rates) < median(b.rates); });
  std::vector<Round> ratio;
  for (std::size_t i = 0; i < best->rates.size(); ++i)
    ratio.push_back({sides.front().rates[i] / best->rates[i], 1 / best->rates[i]});
  std::string note;
  for (const Side& side : sides)
    note += fmt::format("{}{} {:.0f}", note.empty() ? "" : ", ", side.name, median(side.rates));
  report({"P13",
          fmt::format("tokens/s of {} active model{}, nothing told / best threads", active,
                      active == 1 ? "" : "s"),
          "", summarize(ratio), Better::higher, 0.6, 0.9, note + " tokens/s"});
}

void run(const Goals&) {
  const Setting setting = read_setting();
  const Folder folder;
  const EngineFiles files = engine_files(setting, folder);
  // As many as there are cores are enough: more only wait for one another.
  const std::size_t cores = std::max<std::size_t>(std::thread::hardware_concurrency(), 1);
  for (std::size_t threads = 0; threads <= cores; ++threads)
    make_copies(setting, folder, fmt::format("home{}", threads), files.model, kModels);
  std::deque<Side> sides;
  for (std::size_t threads = 0; threads <= cores; ++threads)
    sides.emplace_back(setting, folder, files.program, threads);
  for (const std::size_t active : {1, 2, 3}) measure(setting, sides, active);
}

}  // namespace
}  // namespace werk::bench

int main(int count, char** words) {
  return werk::bench::run_main("bench_active", count, words, werk::bench::run);
}
