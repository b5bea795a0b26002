// bench_active: P13. One, two and three models active at once on the processor: a node to which
// nothing about threads was said, beside engines that were started by hand with every number of
// threads this machine has room for, and nothing else. The best of those is what hand-tuning for
// that number of models gives.
#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <memory>
#include <ranges>
#include <string>
#include <thread>
#include <vector>

#include "bench/support/load.hpp"
#include "bench/support/main.hpp"
#include "bench/support/programs.hpp"
#include "bench/support/report.hpp"
#include "bench/support/script_engine.hpp"
#include "bench/support/stats.hpp"

namespace werk::bench {
namespace {

using Words = std::vector<std::string>;

constexpr std::uint64_t kTokens = 96;
// Where threads wait for one another a token can take a second; so who is out of the question is
// told by short answers.
constexpr std::uint64_t kScoutTokens = 8;
constexpr double kOutOfTheQuestion = 0.5;  // of the best
const Words kModels{"r0", "r1", "r2"};

std::string request_for(std::string_view model, std::string_view key, std::uint64_t tokens) {
  const std::string body = fmt::format(
      R"({{"model":"{}","messages":[{{"role":"user","content":"Tell a story about the sea."}}],)"
      R"("temperature":0,"seed":7,"ignore_eos":true,"max_tokens":{},"stream":true,)"
      R"("stream_options":{{"include_usage":true}}}})",
      model, tokens);
  return http_request("POST", target_of(Dialect::openai), body, key);
}

// Where a model is asked, by which name and with which key.
struct Served {
  Endpoint endpoint;
  std::string name;
  std::string key;
};

// What three models are served by: a node, or an engine each. Idle engines cost nothing.
struct Side {
  explicit Side(std::string called) : name(std::move(called)) {}

  void prepare(std::size_t active, std::uint64_t tokens) {
    LoadPlan plan;
    for (const Served& one : served | std::views::take(active)) {
      plan.clients.push_back(
          {one.endpoint, {{Dialect::openai, request_for(one.name, one.key, tokens)}}});
    }
    load = std::make_unique<Load>(std::move(plan));
  }
  // Tokens a second.
  double measure(std::chrono::milliseconds length) const {
    const LoadResult result = load->run_for(length);
    if (result.failures > 0) throw std::runtime_error("an answer failed: " + result.first_failure);
    return static_cast<double>(result.tokens) / result.seconds;
  }

  std::string name;
  std::unique_ptr<Node> node;
  std::deque<ScriptEngine> engines;
  std::vector<Served> served;
  std::unique_ptr<Load> load;
  std::vector<double> rates;
};

Side untold(const Setting& setting, const Folder& folder, const std::string& engine) {
  Side side("nothing told");
  const Words words{"--backend", "llama-cpu", "--ctx-size", "1024", "--log-level", "warn"};
  side.node = std::make_unique<Node>(setting, folder / "home", words,
                                     Words{"WERK_LLAMA_SERVER=" + engine}, folder / "node.log");
  for (const std::string& model : kModels) {
    const Answer answer = ask(side.node->endpoint(), request_for(model, "", kScoutTokens));
    if (answer.status != 200) throw std::runtime_error("a model failed: " + answer.body);
    side.served.push_back({side.node->endpoint(), model, ""});
  }
  return side;
}

// Engines with the node's command lines but for the number of threads.
Side by_hand(const Node& node, const Folder& folder, std::size_t threads) {
  Side side(fmt::format("-t {}", threads));
  for (const std::string& model : kModels) {
    EngineHandle like = node.engine("/" + model + "/");
    const auto told = std::ranges::find(like.words, "-t");
    if (told == like.words.end()) throw std::runtime_error("the node told its engine no threads");
    *std::next(told) = std::to_string(threads);
    const std::string name = fmt::format("{}-{}", model, threads);
    side.engines.emplace_back(like, folder / (name + ".sock"), Words{}, folder / (name + ".log"));
    side.engines.back().wait_ready();
    side.served.push_back({side.engines.back().endpoint(), like.alias, like.key});
  }
  return side;
}

// What comes near the best one with so many active; the node always does.
std::vector<Side*> worth_measuring(std::deque<Side>& sides, std::size_t active) {
  std::vector<double> rates;
  for (Side& side : sides) {
    side.prepare(active, kScoutTokens);
    rates.push_back(side.measure(std::chrono::seconds(3)));
  }
  const double best = *std::ranges::max_element(rates);
  std::vector<Side*> worth;
  for (std::size_t i = 0; i < sides.size(); ++i) {
    if (i == 0 || rates[i] > best * kOutOfTheQuestion) worth.push_back(&sides[i]);
  }
  return worth;
}

void measure(const Setting& setting, std::deque<Side>& sides, std::size_t active) {
  const std::chrono::seconds slice(setting.quick ? 3 : 6);
  const std::vector<Side*> worth = worth_measuring(sides, active);
  std::vector<double> last(worth.size());
  std::vector<std::function<void()>> turns;
  for (std::size_t i = 0; i < worth.size(); ++i) {
    worth[i]->prepare(active, kTokens);
    worth[i]->rates.clear();
    turns.emplace_back([&, i] { last[i] = worth[i]->measure(slice); });
  }
  alternate(setting.rounds(), turns, [&] {
    for (std::size_t i = 0; i < worth.size(); ++i) worth[i]->rates.push_back(last[i]);
  });
  // Hand-tuning is choosing once for this number, not anew in each round.
  const Side& best = **std::max_element(
      worth.begin() + 1, worth.end(),
      [](const Side* a, const Side* b) { return median(a->rates) < median(b->rates); });
  std::vector<Round> ratio;
  for (std::size_t i = 0; i < best.rates.size(); ++i)
    ratio.push_back({sides.front().rates[i] / best.rates[i], 1 / best.rates[i]});
  std::string note;
  for (const Side& side : sides) {
    const bool measured = std::ranges::find(worth, &side) != worth.end();
    note += note.empty() ? "" : ", ";
    note += measured ? fmt::format("{} {:.0f}", side.name, median(side.rates))
                     : fmt::format("{} less than half of the best", side.name);
  }
  report({"P13",
          fmt::format("tokens/s of {} active model{}, nothing told / best threads by hand", active,
                      active == 1 ? "" : "s"),
          "", summarize(ratio), Better::higher, 0.6, 0.9, note + " tokens/s"});
}

void run(const Goals&) {
  const Setting setting = read_setting();
  const Folder folder;
  const EngineFiles files = engine_files(setting, folder);
  make_copies(setting, folder, "home", files.model, kModels);
  std::deque<Side> sides;
  sides.push_back(untold(setting, folder, files.program));
  // As many as there are cores are enough: more only wait for one another.
  const std::size_t cores = std::max<std::size_t>(std::thread::hardware_concurrency(), 1);
  for (std::size_t threads = 1; threads <= cores; ++threads)
    sides.push_back(by_hand(*sides.front().node, folder, threads));
  for (const std::size_t active : {1, 2, 3}) measure(setting, sides, active);
}

}  // namespace
}  // namespace werk::bench

int main(int count, char** words) {
  return werk::bench::run_main("bench_active", count, words, werk::bench::run);
}
