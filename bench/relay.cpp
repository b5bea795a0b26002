// bench_relay: P2, P3 and P4 (OpenAI half). One mock engine, started by a node; the same requests
// reach it directly, through nginx and through the node, in turn. Direct and nginx ask for the
// stream that the node asks for, so that the engine sends the same bytes to all three.
#include <fmt/format.h>

#include <algorithm>
#include <exception>
#include <memory>
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
constexpr std::string_view kModel = "m0";
constexpr std::uint64_t kSmallTokens = 8;
constexpr std::uint64_t kStreamTokens = 64;
constexpr std::uint64_t kFloodTokens = 20'000;

// A node, its mock, and nginx before the same mock.
struct Stage {
  Stage(const Setting& setting, const Folder& folder, const std::string& name,
        Nginx::AccessLog access_log)
      : events(folder / (name + ".events")),
        node(setting, folder / "home",
             {"--backend", "llama-cpu", "--parallel", "256", "--model", std::string(kModel),
              "--log-level", access_log == Nginx::AccessLog::on ? "info" : "warn"},
             {"WERK_LLAMA_SERVER=" + setting.mock, "BENCH_MOCK_TCP=1", events.variable()},
             folder / (name + ".log")) {
    direct.port = static_cast<std::uint16_t>(events.expect("spawned").number);
    events.expect("ready");
    engine = node.engine();
    nginx = std::make_unique<Nginx>(folder, name, engine.socket, access_log);
  }

  LoadPlan plan(const Endpoint& endpoint, Audience audience, std::uint64_t tokens,
                std::size_t connections) const {
    LoadPlan plan;
    plan.endpoint = endpoint;
    plan.connections = connections;
    plan.expected_hash = mock_text_hash(tokens);
    MockOrder order;
    order.tokens = tokens;
    const bool to_engine = audience == Audience::engine;
    plan.requests = {http_request("POST", kTarget,
                                  mock_body(to_engine ? engine.alias : kModel, audience, order),
                                  to_engine ? engine.key : "")};
    return plan;
  }

  MockEvents events;
  Node node;
  Endpoint direct;
  EngineHandle engine;
  std::unique_ptr<Nginx> nginx;
};

// The three ways to the mock, each with connections that stay.
class Ways {
 public:
  Ways(const Stage& stage, Audience audience, std::uint64_t tokens, std::size_t connections,
       std::chrono::milliseconds slice)
      : direct_(stage.plan(stage.direct, Audience::engine, tokens, connections)),
        nginx_(stage.plan(stage.nginx->endpoint(), Audience::engine, tokens, connections)),
        werk_(stage.plan(stage.node.endpoint(), audience, tokens, connections)),
        slice_(slice) {}

  // Calls `end` behind each round with the three results at hand.
  void measure(std::size_t rounds, const std::function<void()>& end) {
    alternate(rounds,
              {[this] { direct = run(direct_); }, [this] { nginx = run(nginx_); },
               [this] { werk = run(werk_); }},
              end);
  }

  LoadResult direct;
  LoadResult nginx;
  LoadResult werk;

 private:
  LoadResult run(Load& load) {
    LoadResult result = load.run_for(slice_);
    if (result.failures > 0) throw std::runtime_error("an answer failed: " + result.first_failure);
    return result;
  }

  Load direct_;
  Load nginx_;
  Load werk_;
  std::chrono::milliseconds slice_;
};

enum class Moment : std::uint8_t { first_text, whole };

void measure_latency(const Setting& setting, const Stage& stage, Moment moment) {
  const bool stream = moment == Moment::first_text;
  const std::string what =
      stream ? fmt::format("time to first text, streams of {} words", kStreamTokens)
             : fmt::format("whole answers of {} words", kSmallTokens);
  Ways ways(stage, stream ? Audience::node_stream : Audience::node_whole,
            stream ? kStreamTokens : kSmallTokens, 1,
            std::chrono::milliseconds(setting.quick ? 200 : 600));
  std::vector<Round> ratio;
  std::vector<Round> added;
  std::vector<Round> added_p99;
  std::vector<double> direct_us;
  std::vector<double> nginx_us;
  std::uint64_t near_forty_ms = 0;
  std::size_t samples = 0;
  double longest_us = 0;
  ways.measure(setting.rounds(), [&] {
    const auto of = [stream](LoadResult& result) -> std::vector<double>& {
      return stream ? result.first_us : result.whole_us;
    };
    const double direct = percentile(of(ways.direct), 0.5);
    const double nginx = percentile(of(ways.nginx), 0.5) - direct;
    const double werk = percentile(of(ways.werk), 0.5) - direct;
    direct_us.push_back(direct);
    nginx_us.push_back(nginx);
    if (nginx > 0) ratio.push_back({werk / nginx, direct});
    added.push_back({werk, direct});
    added_p99.push_back(
        {percentile(of(ways.werk), 0.99) - percentile(of(ways.direct), 0.99), direct});
    for (const double sample : ways.werk.whole_us) {
      if (sample >= 35'000 && sample <= 45'000) ++near_forty_ms;
      longest_us = std::max(longest_us, sample);
    }
    samples += ways.werk.whole_us.size();
  });
  report({"P2", "added p50, Werk / nginx: " + what, "", summarize(ratio), Better::lower, 3, 1.5,
          fmt::format("direct {:.0f} us, nginx adds {:.0f} us, Werk adds {:.0f} us",
                      median(direct_us), median(nginx_us), summarize(added).median)});
  report(
      {"P2", "added p99 of Werk: " + what, "us", summarize(added_p99), Better::lower, 1000, 0, ""});
  report({"P2", "samples between 35 and 45 ms: " + what, "samples",
          single(static_cast<double>(near_forty_ms)), Better::equal, 0, 0,
          fmt::format("of {}; the longest took {:.2f} ms", samples, longest_us / 1000)});
}

void measure_rate(const Setting& setting, const Stage& stage, const std::string& with) {
  Ways ways(stage, Audience::node_whole, kSmallTokens, 64,
            std::chrono::milliseconds(setting.quick ? 250 : 800));
  std::vector<Round> ratio;
  std::vector<double> direct;
  std::vector<double> nginx;
  std::vector<double> werk;
  ways.measure(setting.rounds(), [&] {
    const auto rate = [](const LoadResult& result) {
      return static_cast<double>(result.answers) / result.seconds;
    };
    direct.push_back(rate(ways.direct));
    nginx.push_back(rate(ways.nginx));
    werk.push_back(rate(ways.werk));
    ratio.push_back({werk.back() / nginx.back(), 1 / direct.back()});
  });
  report({"P3", "requests/s, 64 connections, Werk / nginx" + with, "", summarize(ratio),
          Better::higher, 0.5, 0.9,
          fmt::format("direct {:.0f}/s, nginx {:.0f}/s, Werk {:.0f}/s", median(direct),
                      median(nginx), median(werk))});
}

void measure_flood(const Setting& setting, const Stage& stage) {
  Ways ways(stage, Audience::node_stream, kFloodTokens, 8,
            std::chrono::milliseconds(setting.quick ? 250 : 600));
  std::vector<Round> ratio;
  std::vector<double> direct;
  std::vector<double> nginx;
  std::vector<double> werk;
  ways.measure(setting.rounds(), [&] {
    const auto rate = [](const LoadResult& result) {
      return static_cast<double>(result.events) / result.seconds;
    };
    direct.push_back(rate(ways.direct));
    nginx.push_back(rate(ways.nginx));
    werk.push_back(rate(ways.werk));
    ratio.push_back({werk.back() / nginx.back(), 1 / direct.back()});
  });
  report({"P4", "events/s, 8 flooding streams, Werk / nginx", "", summarize(ratio), Better::higher,
          0.4, 0.9,
          fmt::format("direct {:.0f}k/s, nginx {:.0f}k/s, Werk {:.0f}k/s; every text's hash was "
                      "as expected",
                      median(direct) / 1000, median(nginx) / 1000, median(werk) / 1000)});
}

// The words name what to measure; without one, everything.
int main_with(const std::vector<std::string>& words) {
  const auto wanted = [&words](std::string_view goal) {
    return words.empty() || std::ranges::find(words, goal) != words.end();
  };
  const Setting setting = read_setting();
  const Folder folder;
  make_home(setting, folder, "home", {std::string(kModel)});
  {
    const Stage stage(setting, folder, "quiet", Nginx::AccessLog::off);
    if (wanted("P2")) measure_latency(setting, stage, Moment::whole);
    if (wanted("P2")) measure_latency(setting, stage, Moment::first_text);
    if (wanted("P3")) measure_rate(setting, stage, ", no access lines");
    if (wanted("P4")) measure_flood(setting, stage);
    stage.nginx->stop();
  }
  if (wanted("P3")) {
    const Stage stage(setting, folder, "logging", Nginx::AccessLog::on);
    measure_rate(setting, stage, ", both writing access lines");
  }
  return 0;
}

}  // namespace
}  // namespace werk::bench

int main(int count, char** words) {
  try {
    return werk::bench::main_with(std::vector<std::string>(words + 1, words + count));
  } catch (const std::exception& error) {
    fmt::print(stderr, "bench_relay: {}\n", error.what());
    return 1;
  }
}
