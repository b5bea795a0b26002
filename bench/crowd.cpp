// bench_crowd: P5. 2,000 streams at one word a second through nginx and through a node, half of the
// node's in Messages: how much memory each stream takes, whether all come whole and in time, and
// whether the descriptors come back. Then 100 clients that never read.
#include <fmt/format.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <stdexcept>
#include <string>
#include <vector>

#include "bench/support/crowd.hpp"
#include "bench/support/main.hpp"
#include "bench/support/mock_control.hpp"
#include "bench/support/programs.hpp"
#include "bench/support/report.hpp"
#include "bench/support/stats.hpp"

namespace werk::bench {
namespace {

using namespace std::chrono_literals;

constexpr std::uint64_t kPaceUs = 1'000'000;
constexpr std::uint64_t kWords = 7;
// Far beyond what a socket's buffers hold.
constexpr std::uint64_t kEndlessWords = 200'000;
constexpr std::size_t kStalledReaders = 100;
constexpr double kStallMs = 3000;

using Asks = std::vector<CrowdAsk>;
// A model has 256 slots at most. The first half is asked in OpenAI's dialect.
const std::vector<std::string> kModels{"m0", "m1", "m2", "m3", "m4", "m5", "m6", "m7"};

MockOrder paced() {
  MockOrder order;
  order.tokens = kWords;
  order.pace_us = kPaceUs;
  return order;
}

CrowdAsk ask_node(const Node& node, const std::string& model, Dialect dialect,
                  const MockOrder& order) {
  return {node.endpoint(), dialect, mock_request(dialect, model, Audience::node_stream, order),
          mock_text_hash(order.tokens)};
}

// One for each of the models of that half.
Asks asks_of(const Node& node, Dialect dialect, const MockOrder& order) {
  const auto middle = kModels.begin() + static_cast<std::ptrdiff_t>(kModels.size() / 2);
  const bool first = dialect == Dialect::openai;
  Asks asks;
  for (auto model = first ? kModels.begin() : middle; model != (first ? middle : kModels.end());
       ++model) {
    asks.push_back(ask_node(node, *model, dialect, order));
  }
  return asks;
}

// What a crowd leaves behind in one server.
struct Growth {
  double first_half_kib = 0;  // per stream
  double second_half_kib = 0;
  double kib = 0;
  std::size_t lost = 0;
  double longest_wait_ms = 0;
  double kept_kib = 0;  // behind the end, in all
};

// The first half of the streams, then the second one, all at once under way when it is measured.
Growth measure_growth(pid_t pid, const Asks& first, const Asks& second, std::size_t streams) {
  const auto half = static_cast<double>(streams / 2);
  const auto ask = [streams](Crowd& crowd, const Asks& asks) {
    for (const CrowdAsk& one : asks) crowd.ask(one, streams / 2 / asks.size());
  };
  Growth growth;
  Crowd crowd;
  const double before = resident_kib(pid);
  ask(crowd, first);
  crowd.read_for(1s);
  const double between = resident_kib(pid);
  ask(crowd, second);
  crowd.read_for(2s);
  const double held = resident_kib(pid);
  if (crowd.under_way() + crowd.broken() != streams) {
    throw std::runtime_error(
        fmt::format("only {} of {} streams run at once", crowd.under_way(), streams));
  }
  crowd.read_to_end(20s);
  growth.lost = streams - crowd.right();
  growth.longest_wait_ms = crowd.longest_wait_ms();
  crowd.leave();
  growth.first_half_kib = (between - before) / half;
  growth.second_half_kib = (held - between) / half;
  growth.kib = (held - before) / (2 * half);
  growth.kept_kib = resident_kib(pid) - before;
  return growth;
}

Node node_for_crowd(const Setting& setting, const Folder& folder) {
  return Node(setting, folder / "home",
              {"--backend", "llama-cpu", "--parallel", "256", "--log-level", "warn"},
              {"WERK_LLAMA_SERVER=" + setting.mock}, folder / "node.log");
}

void expect_answer(const CrowdAsk& one) {
  if (ask(one.endpoint, one.request).status != 200) throw std::runtime_error("an answer failed");
}

// Every model is loaded.
void warm_up(const Node& node) {
  for (const Dialect dialect : {Dialect::openai, Dialect::messages}) {
    for (const CrowdAsk& one : asks_of(node, dialect, {})) expect_answer(one);
  }
}

// How many descriptors the node has beyond those at the start, once those of its kept connections
// are closed.
double descriptors_left(pid_t pid, std::size_t before) {
  wait_until([&] { return descriptors_of(pid) <= before; }, 15s);
  const std::size_t now = descriptors_of(pid);
  return now > before ? static_cast<double>(now - before) : 0;
}

// What the rounds found; the lists have one entry a round.
struct Found {
  std::vector<Round> ratio;
  std::vector<Round> left;
  std::vector<double> nginx_kib;
  std::vector<double> werk_kib;
  std::vector<double> openai_kib;
  std::vector<double> messages_kib;
  std::vector<double> kept_mib;
  double second_kib = 0;
  double lost = 0;
  double longest_ms = 0;
  double nginx_longest_ms = 0;
};

void report_paced(const Found& found, std::size_t streams) {
  const std::size_t rounds = found.ratio.size();
  const std::string what = fmt::format("{} paced streams, half of them Messages", streams);
  report({"P5", "memory per stream, Werk / nginx: " + what, "", summarize(found.ratio),
          Better::lower, 3, 1,
          fmt::format("nginx {:.1f} KiB, Werk {:.1f} KiB (OpenAI {:.1f}, Messages {:.1f}); {:.1f} "
                      "MiB more than before when all have ended",
                      median(found.nginx_kib), median(found.werk_kib), median(found.openai_kib),
                      median(found.messages_kib), median(found.kept_mib)),
          rounds});
  report({"P5", "growth per stream of a second such crowd in the same node", "KiB",
          single(found.second_kib), Better::none, 0, 0, ""});
  report({"P5", "streams that did not come whole: " + what, "streams", single(found.lost),
          Better::equal, 0, 0, fmt::format("of {}", streams * rounds)});
  report({"P5", "longest wait for a word that comes every second: " + what, "ms",
          single(found.longest_ms), Better::lower, kStallMs, 0,
          fmt::format("through nginx {:.0f} ms", found.nginx_longest_ms)});
  report({"P5", "descriptors of the node beyond those before: " + what, "descriptors",
          summarize(found.left), Better::equal, 0, 0, "", rounds});
}

void measure_paced(const Setting& setting, const Folder& folder) {
  const std::size_t streams = setting.quick ? 400 : 2000;
  const std::size_t rounds = setting.quick ? 1 : 3;
  Found found;
  for (std::size_t round = 0; round < rounds; ++round) {
    Node node = node_for_crowd(setting, folder);
    warm_up(node);
    const EngineHandle engine = node.engine("/" + kModels.front() + "/");
    const Nginx nginx(folder, fmt::format("nginx{}", round), engine.socket, Nginx::AccessLog::off);
    const std::string past =
        mock_request(Dialect::openai, engine.alias, Audience::engine, paced(), engine.key);
    const Asks through_nginx{{nginx.endpoint(), Dialect::openai, past, mock_text_hash(kWords)}};
    const Growth of_nginx = measure_growth(nginx.worker(), through_nginx, through_nginx, streams);
    if (of_nginx.lost > 0) throw std::runtime_error("nginx lost streams");
    const std::size_t before = descriptors_of(node.pid());
    const auto crowd_of_node = [&] {
      return measure_growth(node.pid(), asks_of(node, Dialect::openai, paced()),
                            asks_of(node, Dialect::messages, paced()), streams);
    };
    const Growth of_werk = crowd_of_node();
    found.left.push_back({descriptors_left(node.pid(), before), 1});
    found.ratio.push_back({of_werk.kib / of_nginx.kib, 1});
    found.nginx_kib.push_back(of_nginx.kib);
    found.werk_kib.push_back(of_werk.kib);
    found.openai_kib.push_back(of_werk.first_half_kib);
    found.messages_kib.push_back(of_werk.second_half_kib);
    found.kept_mib.push_back(of_werk.kept_kib / 1024);
    found.lost += static_cast<double>(of_werk.lost);
    found.longest_ms = std::max(found.longest_ms, of_werk.longest_wait_ms);
    found.nginx_longest_ms = std::max(found.nginx_longest_ms, of_nginx.longest_wait_ms);
    // What an ended stream holds on to would show here.
    if (round + 1 == rounds) found.second_kib = crowd_of_node().kib;
    node.stop();
  }
  report_paced(found, streams);
}

// Clients that ask and then read nothing.
class Stalled {
 public:
  Stalled() = default;
  Stalled(const Stalled&) = delete;
  Stalled& operator=(const Stalled&) = delete;
  ~Stalled() { leave(); }

  void ask(const CrowdAsk& ask, std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) {
      const int file = connect_to(ask.endpoint, Blocking::yes);
      files_.push_back(file);
      const int small = 4096;
      ::setsockopt(file, SOL_SOCKET, SO_RCVBUF, &small, sizeof small);
      if (::send(file, ask.request.data(), ask.request.size(), MSG_NOSIGNAL) <= 0) {
        throw std::runtime_error("can't send");
      }
    }
  }
  void leave() {
    for (const int file : files_) ::close(file);
    files_.clear();
  }

 private:
  std::vector<int> files_;
};

// Until a process does nothing any more.
void wait_quiet(pid_t pid) {
  double last = -1;
  SteadyTime since = steady_now();
  const auto quiet = [&] {
    const double now = cpu_seconds(pid);
    if (now - last > 0.005) {
      last = now;
      since = steady_now();
    }
    return steady_now() - since > 500ms;
  };
  if (!wait_until(quiet, 30s)) throw std::runtime_error("the node never came to rest");
}

void measure_stalled(const Setting& setting, const Folder& folder) {
  const Node node = node_for_crowd(setting, folder);
  MockOrder endless;
  endless.tokens = kEndlessWords;
  const std::string& model = kModels.front();
  const CrowdAsk brief = ask_node(node, model, Dialect::openai, {});
  expect_answer(brief);
  expect_answer(ask_node(node, model, Dialect::messages, {}));
  const std::size_t descriptors = descriptors_of(node.pid());
  const double before = resident_kib(node.pid());
  Stalled readers;
  for (const Dialect dialect : {Dialect::openai, Dialect::messages}) {
    readers.ask(ask_node(node, model, dialect, endless), kStalledReaders / 2);
  }
  wait_quiet(node.pid());
  const double each = (resident_kib(node.pid()) - before) / kStalledReaders;
  const SteadyTime asked = steady_now();
  expect_answer(brief);
  const double meanwhile_ms = microseconds_between(asked, steady_now()) / 1000;
  readers.leave();
  const std::string what =
      fmt::format("{} stalled readers, half of them Messages", kStalledReaders);
  report({"P5", "memory per stream: " + what, "KiB", single(each), Better::lower, 1024, 0,
          fmt::format("each has {} words to come; another call beside them took {:.2f} ms",
                      kEndlessWords, meanwhile_ms)});
  report({"P5", "descriptors of the node beyond those before: " + what, "descriptors",
          single(descriptors_left(node.pid(), descriptors)), Better::equal, 0, 0, ""});
}

void measure_idle(const Setting& setting, const Folder& folder) {
  const Node node = node_for_crowd(setting, folder);
  expect_answer({node.endpoint(), Dialect::openai, http_request("GET", "/v1/models", ""), 0});
  const auto megabytes = [&](std::string_view kind) {
    return resident_kib(node.pid(), kind) * 1024 / 1e6;
  };
  report({"P5", "memory of an idle node without an engine", "MB", single(megabytes("VmRSS")),
          Better::none, 0, 12,
          fmt::format("{:.1f} MB without the mapped program and libraries", megabytes("RssAnon"))});
}

// Two descriptors a stream in the node, and some.
void allow_descriptors(rlim_t wanted) {
  rlimit limit{};
  ::getrlimit(RLIMIT_NOFILE, &limit);
  limit.rlim_cur = limit.rlim_max;
  ::setrlimit(RLIMIT_NOFILE, &limit);
  if (limit.rlim_max < wanted) {
    throw std::runtime_error(
        fmt::format("P5 needs {} open files and may have {} (ulimit -Hn)", wanted, limit.rlim_max));
  }
}

void run(const Goals&) {
  const Setting setting = read_setting();
  allow_descriptors(8192);
  const Folder folder;
  make_home(setting, folder, "home", kModels);
  measure_idle(setting, folder);
  measure_paced(setting, folder);
  measure_stalled(setting, folder);
}

}  // namespace
}  // namespace werk::bench

int main(int count, char** words) {
  return werk::bench::run_main("bench_crowd", count, words, werk::bench::run);
}
