// bench_cold: P6, P7 and P8 (OpenAI half). What a node adds to an engine that must be started
// first, beside a script that starts the same engine by hand: with mocks that are ready after an
// exact time, and with a real engine and model.
#include <fmt/format.h>

#include <algorithm>
#include <csignal>
#include <fstream>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "bench/support/load.hpp"
#include "bench/support/main.hpp"
#include "bench/support/mock_control.hpp"
#include "bench/support/programs.hpp"
#include "bench/support/report.hpp"
#include "bench/support/script_engine.hpp"
#include "bench/support/stats.hpp"

namespace werk::bench {
namespace {

namespace fs = std::filesystem;
using Words = std::vector<std::string>;

constexpr std::uint64_t kTokens = 8;
const Words kMockModels{"m0", "m1", "m2"};

std::string chat_request(std::string_view model, std::string_view key, Audience audience,
                         const MockOrder& order) {
  return mock_request(Dialect::openai, model, audience, order, key);
}

// Mock or real: what a node needs to start it, and what the node's command line for it was.
struct Kind {
  std::string name;
  fs::path home;
  Words models;
  Words environment;  // of node and script alike
  Words engine_environment;
  Words arguments;
  std::map<std::string, EngineHandle> engines;  // by model

  Words node_environment() const {
    Words all = environment;
    all.insert(all.end(), engine_environment.begin(), engine_environment.end());
    return all;
  }
};

class Bench {
 public:
  explicit Bench(const Setting& setting) : setting_(setting), events_(folder_ / "events") {
    make_home(setting, folder_, "mock-home", kMockModels);
  }

  Kind mock(long ready_ms) const {
    Kind kind;
    kind.name = fmt::format("mock ready after {} ms", ready_ms);
    kind.home = folder_ / "mock-home";
    kind.models = kMockModels;
    kind.environment = {"WERK_LLAMA_SERVER=" + setting_.mock};
    kind.engine_environment = {events_.variable(), "BENCH_MOCK_TELL=1",
                               fmt::format("BENCH_MOCK_READY_MS={}", ready_ms)};
    return kind;
  }
  Kind real();

  void measure_single_flight();
  void measure_three();
  void measure_real_single_flight(const Kind& kind);
  void measure_cold(Kind kind, std::size_t rounds);
  void measure_alternation(const Kind& kind, std::uint64_t pace_us, std::uint64_t tokens,
                           std::uint64_t requests);
  void measure_swap(Kind kind, std::size_t rounds);

 private:
  std::unique_ptr<Node> node(const Kind& kind, Words arguments = {}) {
    Words words{"--backend", "llama-cpu", "--log-level", "warn"};
    words.insert(words.end(), kind.arguments.begin(), kind.arguments.end());
    words.insert(words.end(), arguments.begin(), arguments.end());
    return std::make_unique<Node>(setting_, kind.home, words, kind.node_environment(),
                                  folder_ / "node.log");
  }
  // The command lines of a node's engines, for the script.
  void learn_engines(Kind& kind, std::size_t models) {
    const auto started = node(kind);
    for (std::size_t i = 0; i < models; ++i) {
      const std::string& model = kind.models[i];
      first_text(started->endpoint(), chat_request(model, "", Audience::node_stream, {}));
      // With several, the path of a model's file tells them apart.
      kind.engines[model] = started->engine(models > 1 ? "/" + model + "/" : "--host");
    }
    started->stop();
    events_.take_all();
  }
  std::unique_ptr<ScriptEngine> script(const Kind& kind, const std::string& model) {
    return std::make_unique<ScriptEngine>(kind.engines.at(model), folder_ / (model + ".sock"),
                                          kind.engine_environment, folder_ / "script.log");
  }
  std::string script_request(const Kind& kind, const std::string& model) const {
    const EngineHandle& like = kind.engines.at(model);
    return chat_request(like.alias, like.key, Audience::engine, {});
  }

  const Setting& setting_;
  Folder folder_;
  MockEvents events_;
};

// The product's own engine and model, found by asking it once, and the model's file under two
// names.
Kind Bench::real() {
  Kind first;
  first.home = setting_.home;
  first.models = {setting_.model};
  first.arguments = {"--ctx-size", "1024", "--threads", "1", "--threads-batch", "1"};
  if (!setting_.real_engine.empty()) {
    first.environment = {"WERK_LLAMA_SERVER=" + setting_.real_engine};
  }
  learn_engines(first, 1);
  const Words& words = first.engines.at(setting_.model).words;
  const fs::path file = *(std::ranges::find(words, "-m") + 1);
  Kind kind = first;
  kind.name = "real engine, " + setting_.model;
  kind.home = folder_ / "real-home";
  kind.models = {"r0", "r1"};
  kind.engines.clear();
  kind.environment = {"WERK_LLAMA_SERVER=" + words.front()};
  make_copies(setting_, folder_, "real-home", file, kind.models);
  learn_engines(kind, 2);
  return kind;
}

void Bench::measure_single_flight() {
  constexpr std::size_t kCallers = 32;
  const Kind kind = mock(300);
  std::vector<Round> processes;
  std::vector<Round> last_ms;
  for (std::size_t round = 0; round < setting_.rounds(); ++round) {
    const auto cold = node(kind, {"--parallel", std::to_string(kCallers)});
    LoadPlan plan;
    plan.endpoint = cold->endpoint();
    plan.connections = kCallers;
    plan.expected_hash = mock_text_hash(kTokens);
    plan.requests = {chat_request("m0", "", Audience::node_whole, {})};
    Load load(std::move(plan));
    const LoadResult result = load.run_times(1);
    if (result.answers != kCallers) throw std::runtime_error("lost: " + result.first_failure);
    double spawned = 0;
    std::int64_t ready_us = 0;
    std::int64_t last_us = 0;
    for (const MockEvent& event : events_.take_all()) {
      if (event.name == "spawned") ++spawned;
      if (event.name == "ready") ready_us = event.at_us;
      if (event.name == "request") last_us = std::max(last_us, event.at_us);
    }
    processes.push_back({spawned, 1});
    last_ms.push_back({static_cast<double>(last_us - ready_us) / 1000, 1});
    cold->stop();
  }
  report({"P6", "engine processes for 32 callers at once on one cold model", "processes",
          summarize(processes), Better::equal, 1, 0, "every caller got the right text"});
  report({"P6", "last of the 32 callers reaches the engine after it is ready", "ms",
          summarize(last_ms), Better::none, 0, 20, "mock ready after 300 ms"});
}

void Bench::measure_three() {
  constexpr std::size_t kCallers = 8;
  Kind kind = mock(300);
  kind.arguments = {"--parallel", "8"};
  learn_engines(kind, 3);
  std::vector<Round> processes;
  std::vector<Round> ratio;
  double by_node = 0;
  double by_script = 0;
  double spawned = 0;
  const auto through_node = [&] {
    const auto cold = node(kind);
    LoadPlan plan;
    plan.endpoint = cold->endpoint();
    plan.connections = 3 * kCallers;
    plan.expected_hash = mock_text_hash(kTokens);
    for (const std::string& model : kMockModels) {
      plan.requests.push_back(chat_request(model, "", Audience::node_whole, {}));
    }
    Load load(std::move(plan));
    const LoadResult result = load.run_times(1);
    if (result.answers != 3 * kCallers) throw std::runtime_error("lost: " + result.first_failure);
    by_node = result.seconds;
    spawned = 0;
    for (const MockEvent& event : events_.take_all()) spawned += event.name == "spawned" ? 1 : 0;
    cold->stop();
  };
  const auto by_hand = [&] {
    const SteadyTime begun = steady_now();
    std::vector<std::unique_ptr<ScriptEngine>> engines;
    for (const std::string& model : kMockModels) engines.push_back(script(kind, model));
    for (std::size_t i = 0; i < engines.size(); ++i) {
      engines[i]->wait_ready();
      LoadPlan plan;
      plan.endpoint = engines[i]->endpoint();
      plan.connections = kCallers;
      plan.expected_hash = mock_text_hash(kTokens);
      plan.requests = {script_request(kind, kMockModels[i])};
      Load(std::move(plan)).run_times(1);
    }
    by_script = microseconds_between(begun, steady_now()) / 1e6;
    events_.take_all();
  };
  alternate(setting_.rounds(), {by_hand, through_node}, [&] {
    processes.push_back({spawned, 1});
    ratio.push_back({by_node / by_script, by_script});
  });
  report({"P6", "engine processes for 8 callers on each of 3 cold models", "processes",
          summarize(processes), Better::equal, 3, 0, "every caller got the right text"});
  report({"P6", "three cold models at once, Werk / script", "", summarize(ratio), Better::none, 0,
          1.15, "mocks ready after 300 ms"});
}

void Bench::measure_real_single_flight(const Kind& kind) {
  constexpr std::size_t kCallers = 32;
  const fs::path counter = folder_ / "starts";
  const fs::path wrapper = folder_ / "counting-server";
  std::ofstream(wrapper) << "#!/bin/sh\ncase \" $* \" in *\" -m \"*) echo $$ >> '"
                         << counter.string() << "';; esac\nexec '"
                         << kind.engines.at("r0").words.front() << "' \"$@\"\n";
  fs::permissions(wrapper, fs::perms::owner_all);
  Kind counted = kind;
  counted.environment = {"WERK_LLAMA_SERVER=" + wrapper.string()};
  const auto cold = node(counted, {"--parallel", std::to_string(kCallers)});
  LoadPlan plan;
  plan.endpoint = cold->endpoint();
  plan.connections = kCallers;
  plan.requests = {chat_request("r0", "", Audience::node_whole, {})};
  Load load(std::move(plan));
  const LoadResult result = load.run_times(1);
  if (result.answers != kCallers) throw std::runtime_error("lost: " + result.first_failure);
  std::ifstream starts(counter);
  const auto lines = std::count(std::istreambuf_iterator<char>(starts), {}, '\n');
  const std::size_t living = children_of(cold->pid(), "--host").size();
  cold->stop();
  report(
      {"P6", "engine processes for 32 callers on one cold model, real engine", "processes",
       single(static_cast<double>(lines)), Better::equal, 1, 0,
       fmt::format("{} in the process table; all answered in {:.1f} s", living, result.seconds)});
}

void Bench::measure_cold(Kind kind, std::size_t rounds) {
  learn_engines(kind, 1);
  const std::string& model = kind.models.front();
  const std::string request = chat_request(model, "", Audience::node_stream, {});
  double by_node = 0;
  double by_script = 0;
  std::vector<Round> ratio;
  std::vector<Round> added;
  const auto through_node = [&] {
    const auto cold = node(kind);
    const SteadyTime begun = steady_now();
    by_node = microseconds_between(begun, first_text(cold->endpoint(), request)) / 1000;
    cold->stop();
  };
  const auto by_hand = [&] {
    const SteadyTime begun = steady_now();
    const auto engine = script(kind, model);
    engine->wait_ready();
    const SteadyTime first = first_text(engine->endpoint(), script_request(kind, model));
    by_script = microseconds_between(begun, first) / 1000;
    engine->stop();
  };
  std::vector<double> script_ms;
  alternate(rounds, {by_hand, through_node}, [&] {
    ratio.push_back({by_node / by_script, by_script});
    added.push_back({by_node - by_script, by_script});
    script_ms.push_back(by_script);
    events_.take_all();
  });
  report({"P7", "first text of a cold model, Werk / script: " + kind.name, "", summarize(ratio),
          Better::lower, 1.05, 1.01,
          fmt::format("script {:.1f} ms, Werk adds {:.1f} ms", median(script_ms),
                      summarize(added).median)});
}

void Bench::measure_alternation(const Kind& kind, std::uint64_t pace_us, std::uint64_t tokens,
                                std::uint64_t requests) {
  const auto warm = node(kind);
  MockOrder order;
  order.tokens = tokens;
  order.pace_us = pace_us;
  const auto request = [&order](const std::string& model) {
    return chat_request(model, "", Audience::node_stream, order);
  };
  const auto plan = [&](const Words& models) {
    LoadPlan made;
    made.endpoint = warm->endpoint();
    for (const std::string& model : models) made.requests.push_back(request(model));
    return made;
  };
  const Words both(kind.models.begin(), kind.models.begin() + 2);
  Load same(plan({both.front()}));
  Load alternating(plan(both));
  double same_seconds = 0;
  double alternating_seconds = 0;
  const auto seconds = [requests](Load& load) {
    const LoadResult result = load.run_times(requests);
    if (result.failures > 0) throw std::runtime_error("an answer failed: " + result.first_failure);
    return result.seconds;
  };
  std::vector<Round> ratio;
  std::vector<double> each_ms;
  alternate(
      setting_.rounds(),
      {[&] { same_seconds = seconds(same); }, [&] { alternating_seconds = seconds(alternating); }},
      [&] {
        ratio.push_back({alternating_seconds / same_seconds, same_seconds});
        each_ms.push_back(same_seconds * 1000 / static_cast<double>(requests));
      });
  const std::size_t loads = children_of(warm->pid(), "--host").size();
  warm->stop();
  events_.take_all();
  const bool instant = pace_us == 0 && kind.name.starts_with("mock");
  report({"P8", fmt::format("two resident models in turn / one: {}", kind.name), "",
          summarize(ratio), instant ? Better::none : Better::lower, instant ? 0 : 1.05, 1.01,
          fmt::format("{} requests a slice, {:.2f} ms each; {} engines loaded", requests,
                      median(each_ms), loads)});
}

void Bench::measure_swap(Kind kind, std::size_t rounds) {
  learn_engines(kind, 2);
  const auto full = node(kind, {"--max-resident", "1"});
  std::size_t node_turn = 0;
  std::size_t script_turn = 0;
  std::unique_ptr<ScriptEngine> engine;
  double by_node = 0;
  double by_script = 0;
  const auto through_node = [&] {
    const std::string& model = kind.models[++node_turn % 2];
    const std::string request = chat_request(model, "", Audience::node_stream, {});
    const SteadyTime begun = steady_now();
    by_node = microseconds_between(begun, first_text(full->endpoint(), request)) / 1000;
  };
  const auto by_hand = [&] {
    const std::string& model = kind.models[++script_turn % 2];
    const SteadyTime begun = steady_now();
    if (engine != nullptr) engine->stop();
    engine = script(kind, model);
    engine->wait_ready();
    const SteadyTime first = first_text(engine->endpoint(), script_request(kind, model));
    by_script = microseconds_between(begun, first) / 1000;
  };
  std::vector<Round> ratio;
  std::vector<Round> added;
  std::vector<double> script_ms;
  // The warm-up round has nothing to stop yet.
  alternate(rounds, {by_hand, through_node}, [&] {
    ratio.push_back({by_node / by_script, by_script});
    added.push_back({by_node - by_script, by_script});
    script_ms.push_back(by_script);
  });
  const std::size_t living = children_of(full->pid(), "--host").size();
  full->stop();
  events_.take_all();
  report({"P8", "forced swap at capacity 1, Werk / script: " + kind.name, "", summarize(ratio),
          Better::lower, 1.10, 1.03,
          fmt::format("script {:.1f} ms, Werk adds {:.1f} ms; {} engine resident at the end",
                      median(script_ms), summarize(added).median, living)});
}

void run(const Goals& goals) {
  const Setting setting = read_setting();
  Bench bench(setting);
  Kind real;
  if (!setting.home.empty()) real = bench.real();
  if (goals.has("P6")) {
    bench.measure_single_flight();
    bench.measure_three();
    if (!real.models.empty()) bench.measure_real_single_flight(real);
  }
  if (goals.has("P7")) {
    for (const long ready_ms : {50, 300, 2000}) {
      bench.measure_cold(bench.mock(ready_ms), setting.rounds());
    }
    if (!real.models.empty()) bench.measure_cold(real, setting.rounds());
  }
  if (goals.has("P8")) {
    Kind instant = bench.mock(0);
    // Nobody reads the events of so many calls while they run.
    std::erase(instant.engine_environment, "BENCH_MOCK_TELL=1");
    Kind paced = instant;
    paced.name = "mock, 10 words 2 ms apart";
    bench.measure_alternation(paced, 2000, 10, 50);
    Kind quick = instant;
    quick.name = "mock, answers at once";
    bench.measure_alternation(quick, 0, kTokens, setting.quick ? 400 : 1000);
    if (!real.models.empty()) bench.measure_alternation(real, 0, 16, 8);
    for (const long ready_ms : {50, 300})
      bench.measure_swap(bench.mock(ready_ms), setting.rounds());
    if (!real.models.empty()) bench.measure_swap(real, setting.rounds());
  }
}

}  // namespace
}  // namespace werk::bench

int main(int count, char** words) {
  return werk::bench::run_main("bench_cold", count, words, werk::bench::run);
}
