// bench_mixed: P9. Six clients of three models in a closed loop, through the node and to the same
// three engine processes over their own sockets. Through the node the clients take turns with both
// dialects, streamed and whole; direct they ask for what the node asks the engines. Each engine has
// one thread, and slots for both of its clients.
#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <vector>

#include "bench/support/load.hpp"
#include "bench/support/main.hpp"
#include "bench/support/programs.hpp"
#include "bench/support/report.hpp"
#include "bench/support/stats.hpp"

namespace werk::bench {
namespace {

using Words = std::vector<std::string>;

constexpr std::uint64_t kTokens = 48;
constexpr std::size_t kClients = 6;
const Words kModels{"r0", "r1", "r2"};

enum class Answered : std::uint8_t { streamed, whole };

LoadRequest request_for(Dialect dialect, Answered answered, std::string_view model,
                        std::string_view key) {
  std::string body = fmt::format(
      R"({{"model":"{}","messages":[{{"role":"user","content":"Tell a story about the sea."}}],)"
      R"("temperature":0,"max_tokens":{})",
      model, kTokens);
  if (answered == Answered::streamed) body += R"(,"stream":true)";
  if (dialect == Dialect::openai) {
    body += R"(,"seed":7,"ignore_eos":true)";
    if (answered == Answered::streamed) {
      body += R"(,"stream_options":{"include_usage":true},"return_progress":true)";
    }
  }
  return {dialect, http_request("POST", target_of(dialect), body + "}", key)};
}

Words node_words() {
  return {"--backend", "llama-cpu", "--parallel",      "2", "--ctx-size",  "1024",
          "--threads", "1",         "--threads-batch", "1", "--log-level", "warn"};
}

// How evenly tokens fell to the clients.
struct Fairness {
  double slowest_share = 0;  // of the mean
  double jain = 0;           // 1: all the same
};

Fairness fairness_of(const std::vector<std::uint64_t>& tokens) {
  double sum = 0;
  double squares = 0;
  for (const std::uint64_t count : tokens) {
    sum += static_cast<double>(count);
    squares += static_cast<double>(count) * static_cast<double>(count);
  }
  if (sum == 0) return {};
  const auto clients = static_cast<double>(tokens.size());
  const auto least = static_cast<double>(*std::ranges::min_element(tokens));
  return {least / (sum / clients), sum * sum / (clients * squares)};
}

struct Way {
  explicit Way(std::vector<LoadClient> clients)
      : load([&] {
          LoadPlan plan;
          plan.clients = std::move(clients);
          return plan;
        }()) {}

  void measure(std::chrono::milliseconds length) {
    const LoadResult result = load.run_for(length);
    if (result.failures > 0) throw std::runtime_error("an answer failed: " + result.first_failure);
    rate = static_cast<double>(result.tokens) / result.seconds;
    fairness = fairness_of(result.tokens_of);
    tokens.resize(result.tokens_of.size());
    for (std::size_t i = 0; i < tokens.size(); ++i) tokens[i] += result.tokens_of[i];
  }

  Load load;
  double rate = 0;  // of the last slice
  Fairness fairness;
  std::vector<std::uint64_t> tokens;  // each client's, of all slices
};

std::vector<LoadClient> through_node(const Node& node) {
  std::vector<LoadClient> clients;
  for (std::size_t i = 0; i < kClients; ++i) {
    const std::string& model = kModels[i % kModels.size()];
    LoadClient client{node.endpoint(), {}};
    for (const Dialect dialect : {Dialect::openai, Dialect::messages}) {
      for (const Answered answered : {Answered::streamed, Answered::whole})
        client.requests.push_back(request_for(dialect, answered, model, ""));
    }
    // So that at any moment some are in each of the four.
    std::ranges::rotate(client.requests,
                        client.requests.begin() + static_cast<std::ptrdiff_t>(i % 4));
    clients.push_back(std::move(client));
  }
  return clients;
}

std::vector<LoadClient> direct(const std::vector<EngineHandle>& engines) {
  std::vector<LoadClient> clients;
  for (std::size_t i = 0; i < kClients; ++i) {
    const EngineHandle& engine = engines[i % engines.size()];
    clients.push_back(
        {engine.endpoint(),
         {request_for(Dialect::openai, Answered::streamed, engine.alias, engine.key)}});
  }
  return clients;
}

// Each model is loaded once, and found by the path of its file.
std::vector<EngineHandle> load_engines(const Node& node) {
  std::vector<EngineHandle> engines;
  for (const std::string& model : kModels) {
    const LoadRequest request =
        request_for(Dialect::openai, Answered::whole, model, std::string_view());
    const Answer answer = ask(node.endpoint(), request.bytes);
    if (answer.status != 200) throw std::runtime_error("a model failed: " + answer.body);
    engines.push_back(node.engine("/" + model + "/"));
  }
  return engines;
}

void run(const Goals&) {
  const Setting setting = read_setting();
  const Folder folder;
  const EngineFiles files = engine_files(setting, folder);
  make_copies(setting, folder, "home", files.model, kModels);
  Node node(setting, folder / "home", node_words(), {"WERK_LLAMA_SERVER=" + files.program},
            folder / "node.log");
  const std::vector<EngineHandle> engines = load_engines(node);
  Way werk(through_node(node));
  Way alone(direct(engines));
  // Five minutes in all, so that every client asks many times within a slice.
  const std::chrono::seconds slice(setting.quick ? 4 : 15);
  std::vector<Round> ratio;
  std::vector<Round> share;
  std::vector<double> alone_rates;
  alternate(setting.rounds(), {[&] { alone.measure(slice); }, [&] { werk.measure(slice); }}, [&] {
    ratio.push_back({werk.rate / alone.rate, 1 / alone.rate});
    share.push_back({werk.fairness.slowest_share / alone.fairness.slowest_share, 1 / alone.rate});
    alone_rates.push_back(alone.rate);
  });
  const std::size_t living = children_of(node.pid(), "--host").size();
  node.stop();
  report({"P9", "tokens/s of 6 clients on 3 models, Werk / direct", "", summarize(ratio),
          Better::higher, 0.97, 0.99,
          fmt::format("direct {:.1f} tokens/s; {} engines", median(alone_rates), living)});
  report({"P9", "slowest client's share of the mean, Werk / direct", "", summarize(share),
          Better::higher, 0.9, 0.98,
          fmt::format("of all slices {:.3f} and {:.3f}", fairness_of(werk.tokens).slowest_share,
                      fairness_of(alone.tokens).slowest_share)});
  report({"P9", "Jain index of the clients' tokens through Werk", "",
          single(fairness_of(werk.tokens).jain), Better::none, 0, 0,
          fmt::format("direct {:.4f}", fairness_of(alone.tokens).jain), 1});
}

}  // namespace
}  // namespace werk::bench

int main(int count, char** words) {
  return werk::bench::run_main("bench_mixed", count, words, werk::bench::run);
}
