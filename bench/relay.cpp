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

  LoadPlan plan(const Endpoint& endpoint, Audience audience, const MockOrder& order,
                std::size_t connections) const {
    LoadPlan plan;
    plan.endpoint = endpoint;
    plan.connections = connections;
    plan.expected_hash = mock_text_hash(order.tokens);
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

// How long each side is measured in one round: in several turns, since where the scheduler puts the
// processes decides a small latency more than anything that stands between them.
struct Slice {
  std::chrono::milliseconds turn;
  std::size_t turns = 1;
};

void add(LoadResult& sum, const LoadResult& part) {
  if (part.failures > 0) throw std::runtime_error("an answer failed: " + part.first_failure);
  sum.seconds += part.seconds;
  sum.answers += part.answers;
  sum.events += part.events;
  sum.whole_us.insert(sum.whole_us.end(), part.whole_us.begin(), part.whole_us.end());
  sum.first_us.insert(sum.first_us.end(), part.first_us.begin(), part.first_us.end());
}

// The three ways to the mock, each with connections that stay.
class Ways {
 public:
  Ways(const Stage& stage, Audience audience, const MockOrder& order, std::size_t connections,
       Slice slice)
      : direct_(stage.plan(stage.direct, Audience::engine, order, connections)),
        nginx_(stage.plan(stage.nginx->endpoint(), Audience::engine, order, connections)),
        werk_(stage.plan(stage.node.endpoint(), audience, order, connections)),
        slice_(slice) {}

  // Calls `end` behind each round with the three results at hand.
  void measure(std::size_t rounds, const std::function<void()>& end) {
    std::size_t turn = 0;
    const auto begin = [&] {
      if (turn++ % slice_.turns == 0) direct = nginx = werk = {};
    };
    const auto side = [&](LoadResult& sum, Load& load) {
      return [this, &sum, &load] { add(sum, load.run_for(slice_.turn)); };
    };
    std::vector<std::function<void()>> sides{side(direct, direct_), side(nginx, nginx_),
                                             side(werk, werk_)};
    for (std::size_t round = 0; round <= rounds; ++round) {
      for (std::size_t i = 0; i < slice_.turns; ++i) {
        begin();
        for (const auto& measure_side : sides) measure_side();
        std::ranges::reverse(sides);
      }
      if (round > 0) end();
    }
  }

  LoadResult direct;
  LoadResult nginx;
  LoadResult werk;

 private:
  Load direct_;
  Load nginx_;
  Load werk_;
  Slice slice_;
};

enum class Moment : std::uint8_t { first_text, whole };

MockOrder words_of_answer(std::uint64_t tokens, std::uint64_t pace_us = 0) {
  MockOrder order;
  order.tokens = tokens;
  order.pace_us = pace_us;
  return order;
}

void measure_latency(const Setting& setting, const Stage& stage, Moment moment,
                     const MockOrder& order, const std::string& what) {
  const bool stream = moment == Moment::first_text;
  Ways ways(stage, stream ? Audience::node_stream : Audience::node_whole, order, 1,
            {std::chrono::milliseconds(60), setting.quick ? 5u : 12u});
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

void measure_rate(const Setting& setting, const Stage& stage, std::uint64_t tokens,
                  const std::string& with) {
  Ways ways(stage, Audience::node_whole, words_of_answer(tokens), 64,
            {std::chrono::milliseconds(200), setting.quick ? 1u : 3u});
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
  report(
      {"P3",
       fmt::format("answers/s of {} word{}, Werk / nginx{}", tokens, tokens == 1 ? "" : "s", with),
       "", summarize(ratio), Better::higher, 0.5, 0.9,
       fmt::format("direct {:.0f}/s, nginx {:.0f}/s, Werk {:.0f}/s", median(direct), median(nginx),
                   median(werk))});
}

void measure_flood(const Setting& setting, const Stage& stage) {
  Ways ways(stage, Audience::node_stream, words_of_answer(kFloodTokens), 8,
            {std::chrono::milliseconds(setting.quick ? 250 : 600)});
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
    if (wanted("P2")) {
      measure_latency(setting, stage, Moment::whole, words_of_answer(kSmallTokens),
                      fmt::format("whole answers of {} words", kSmallTokens));
      measure_latency(setting, stage, Moment::first_text, words_of_answer(4, 1000),
                      "first text of a stream, words 1 ms apart");
      measure_latency(setting, stage, Moment::first_text, words_of_answer(kStreamTokens),
                      fmt::format("first text, {} words in one burst", kStreamTokens));
    }
    if (wanted("P3")) {
      measure_rate(setting, stage, kSmallTokens, ", no access lines");
      measure_rate(setting, stage, 1, ", no access lines");
    }
    if (wanted("P4")) measure_flood(setting, stage);
  }
  if (wanted("P3")) {
    const Stage stage(setting, folder, "logging", Nginx::AccessLog::on);
    measure_rate(setting, stage, kSmallTokens, ", both writing access lines");
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
