// bench_client: one run of the load generator against any address, for profiles and for a look by
// hand. Usage: bench_client (PORT | SOCKET) [connections=1] [seconds=5] [tokens=8] [model=m0]
// [audience=node_whole|node_stream|engine] [dialect=openai|messages] [key=...]
#include <fmt/format.h>

#include <cstdlib>
#include <map>
#include <string>

#include "bench/support/load.hpp"
#include "bench/support/mock_control.hpp"
#include "bench/support/stats.hpp"

namespace werk::bench {
namespace {

int main_with(int count, char** words) {
  if (count < 2) {
    fmt::print(stderr, "usage: bench_client (PORT | SOCKET) [name=value ...]; see client.cpp\n");
    return 2;
  }
  std::map<std::string, std::string> options{
      {"connections", "1"},       {"seconds", "5"}, {"tokens", "8"},      {"model", "m0"},
      {"audience", "node_whole"}, {"key", ""},      {"dialect", "openai"}};
  for (int i = 2; i < count; ++i) {
    const std::string word = words[i];
    options[word.substr(0, word.find('='))] = word.substr(word.find('=') + 1);
  }
  LoadPlan plan;
  const std::string where = words[1];
  if (where.find('/') != std::string::npos) {
    plan.endpoint.unix_path = where;
  } else {
    plan.endpoint.port = static_cast<std::uint16_t>(std::stoul(where));
  }
  Audience audience = Audience::node_whole;
  if (options["audience"] == "node_stream") audience = Audience::node_stream;
  if (options["audience"] == "engine") audience = Audience::engine;
  MockOrder order;
  order.tokens = std::stoull(options["tokens"]);
  plan.connections = std::stoull(options["connections"]);
  if (options["dialect"] == "messages") plan.dialect = Dialect::messages;
  plan.requests = {mock_request(plan.dialect, options["model"], audience, order, options["key"])};
  Load load(std::move(plan));
  LoadResult result = load.run_for(std::chrono::milliseconds(std::stol(options["seconds"]) * 1000));
  const auto answers = static_cast<double>(result.answers);
  fmt::print("{} answers in {:.2f} s: {:.0f}/s, {:.0f} text events/s, {} failures {}\n",
             result.answers, result.seconds, answers / result.seconds,
             static_cast<double>(result.events) / result.seconds, result.failures,
             result.first_failure);
  fmt::print("whole answer p50 {:.1f} us, p99 {:.1f} us; first text p50 {:.1f} us, p99 {:.1f} us\n",
             percentile(result.whole_us, 0.5), percentile(result.whole_us, 0.99),
             percentile(result.first_us, 0.5), percentile(result.first_us, 0.99));
  return result.failures == 0 ? 0 : 1;
}

}  // namespace
}  // namespace werk::bench

int main(int count, char** words) { return werk::bench::main_with(count, words); }
