// bench_relay: P2, P3 and P4. One mock engine, started by a node; the same requests reach it
// directly, through nginx and through the node, in turn. Where the node also translates (Messages),
// direct and nginx still ask in the engine's own dialect: what is measured is the whole price of
// the other one.
#include <fmt/format.h>
#include <sched.h>

#include <algorithm>
#include <stdexcept>
#include <string>
#include <vector>

#include "bench/support/main.hpp"
#include "bench/support/report.hpp"
#include "bench/support/stage.hpp"

namespace werk::bench {
namespace {

constexpr std::uint64_t kSmallTokens = 8;
constexpr std::uint64_t kStreamTokens = 64;
constexpr std::uint64_t kFloodTokens = 20'000;
const std::vector<Dialect> kBothDialects{Dialect::openai, Dialect::messages};

MockOrder words_of_answer(std::uint64_t tokens, std::uint64_t pace_us = 0) {
  MockOrder order;
  order.tokens = tokens;
  order.pace_us = pace_us;
  return order;
}

std::string_view suffix_of(Dialect dialect) {
  return dialect == Dialect::messages ? ", Messages" : "";
}

// This process and whoever it starts meanwhile, on one core: what is left of a latency is work, and
// no longer where the scheduler happens to put client, proxy and engine.
class OneCore {
 public:
  OneCore() {
    if (::sched_getaffinity(0, sizeof before_, &before_) != 0) fail();
    int last = CPU_SETSIZE - 1;
    while (!CPU_ISSET(last, &before_)) --last;
    cpu_set_t only;
    CPU_ZERO(&only);
    CPU_SET(last, &only);
    if (::sched_setaffinity(0, sizeof only, &only) != 0) fail();
  }
  OneCore(const OneCore&) = delete;
  OneCore& operator=(const OneCore&) = delete;
  ~OneCore() { ::sched_setaffinity(0, sizeof before_, &before_); }

 private:
  [[noreturn]] static void fail() { throw std::runtime_error("can't choose a core"); }

  cpu_set_t before_{};
};

enum class Moment : std::uint8_t { first_text, whole };

// What a node adds in one dialect, round by round.
struct Added {
  std::vector<Round> against_nginx;
  std::vector<Round> p50;
  std::vector<Round> p99;
  std::uint64_t near_forty_ms = 0;
  std::size_t samples = 0;
  double longest_us = 0;
};

void report_added(const Added& added, const std::string& what, const std::string& others) {
  report({"P2", "added p50, Werk / nginx: " + what, "", summarize(added.against_nginx),
          Better::lower, 3, 1.5,
          fmt::format("{}, Werk adds {:.0f} us", others, summarize(added.p50).median)});
  report(
      {"P2", "added p99 of Werk: " + what, "us", summarize(added.p99), Better::lower, 1000, 0, ""});
  report(
      {"P2", "samples between 35 and 45 ms: " + what, "samples",
       single(static_cast<double>(added.near_forty_ms)), Better::equal, 0, 0,
       fmt::format("of {}; the longest took {:.2f} ms", added.samples, added.longest_us / 1000)});
}

void measure_latency(const Setting& setting, const Stage& stage, Moment moment,
                     const MockOrder& order, const std::string& what) {
  const bool stream = moment == Moment::first_text;
  Ways ways(stage, {stream ? Audience::node_stream : Audience::node_whole,
                    order,
                    1,
                    {std::chrono::milliseconds(60), setting.quick ? 5u : 12u},
                    kBothDialects});
  std::vector<Added> added(kBothDialects.size());
  std::vector<double> direct_us;
  std::vector<double> nginx_us;
  ways.measure(setting.rounds(), [&] {
    const auto of = [stream](LoadResult& result, double share) {
      return percentile(stream ? result.first_us : result.whole_us, share);
    };
    const double direct = of(ways.direct, 0.5);
    const double nginx = of(ways.nginx, 0.5) - direct;
    direct_us.push_back(direct);
    nginx_us.push_back(nginx);
    for (std::size_t i = 0; i < added.size(); ++i) {
      LoadResult& node = ways.node[i];
      const double werk = of(node, 0.5) - direct;
      if (nginx > 0) added[i].against_nginx.push_back({werk / nginx, direct});
      added[i].p50.push_back({werk, direct});
      added[i].p99.push_back({of(node, 0.99) - of(ways.direct, 0.99), direct});
      for (const double sample : node.whole_us) {
        if (sample >= 35'000 && sample <= 45'000) ++added[i].near_forty_ms;
        added[i].longest_us = std::max(added[i].longest_us, sample);
      }
      added[i].samples += node.whole_us.size();
    }
  });
  const std::string others =
      fmt::format("direct {:.0f} us, nginx adds {:.0f} us", median(direct_us), median(nginx_us));
  for (std::size_t i = 0; i < added.size(); ++i) {
    report_added(added[i], fmt::format("{}{}", what, suffix_of(kBothDialects[i])), others);
  }
}

void measure_answers(const Setting& setting, const Stage& stage, std::uint64_t tokens,
                     const std::string& with) {
  Ways ways(stage, {Audience::node_whole,
                    words_of_answer(tokens),
                    64,
                    {std::chrono::milliseconds(200), setting.quick ? 1u : 3u}});
  const Rates rates = measure_rates(ways, setting.rounds(), &LoadResult::answers);
  report(
      {"P3",
       fmt::format("answers/s of {} word{}, Werk / nginx{}", tokens, tokens == 1 ? "" : "s", with),
       "", rates.node[0].against_nginx, Better::higher, 0.5, 0.9,
       fmt::format("direct {:.0f}/s, nginx {:.0f}/s, Werk {:.0f}/s", rates.direct, rates.nginx,
                   rates.node[0].median)});
}

void measure_flood(const Setting& setting, const Stage& stage) {
  Ways ways(stage, {Audience::node_stream,
                    words_of_answer(kFloodTokens),
                    8,
                    {std::chrono::milliseconds(setting.quick ? 250 : 600)},
                    kBothDialects});
  const Rates rates = measure_rates(ways, setting.rounds(), &LoadResult::events);
  for (std::size_t i = 0; i < kBothDialects.size(); ++i) {
    const bool translated = kBothDialects[i] == Dialect::messages;
    report(
        {"P4",
         fmt::format("events/s, 8 flooding streams, Werk / nginx{}", suffix_of(kBothDialects[i])),
         "", rates.node[i].against_nginx, Better::higher, translated ? 0.15 : 0.4,
         translated ? 0.4 : 0.9,
         fmt::format("direct {:.0f}k/s, nginx {:.0f}k/s, Werk {:.0f}k/s; every text's hash was "
                     "as expected",
                     rates.direct / 1000, rates.nginx / 1000, rates.node[i].median / 1000)});
  }
}

void measure_latencies(const Setting& setting, const Stage& stage, std::string_view where) {
  measure_latency(setting, stage, Moment::whole, words_of_answer(kSmallTokens),
                  fmt::format("whole answers of {} words{}", kSmallTokens, where));
  measure_latency(setting, stage, Moment::first_text, words_of_answer(4, 1000),
                  fmt::format("first text of a stream, words 1 ms apart{}", where));
  measure_latency(setting, stage, Moment::first_text, words_of_answer(kStreamTokens),
                  fmt::format("first text, {} words in one burst{}", kStreamTokens, where));
}

void run(const Goals& goals) {
  const Setting setting = read_setting();
  const Folder folder;
  make_home(setting, folder, "home", {std::string(kStageModel)});
  if (goals.has("P2")) {
    const OneCore pinned;
    const Stage stage(setting, folder, "one-core", Nginx::AccessLog::off);
    measure_latencies(setting, stage, ", all on one core");
  }
  {
    const Stage stage(setting, folder, "quiet", Nginx::AccessLog::off);
    if (goals.has("P2")) measure_latencies(setting, stage, "");
    if (goals.has("P3")) {
      measure_answers(setting, stage, kSmallTokens, ", no access lines");
      measure_answers(setting, stage, 1, ", no access lines");
    }
    if (goals.has("P4")) measure_flood(setting, stage);
  }
  if (goals.has("P3")) {
    const Stage stage(setting, folder, "logging", Nginx::AccessLog::on);
    measure_answers(setting, stage, kSmallTokens, ", both writing access lines");
  }
}

}  // namespace
}  // namespace werk::bench

int main(int count, char** words) {
  return werk::bench::run_main("bench_relay", count, words, werk::bench::run);
}
