// bench_cancel: P12. How long from a client's close to the engine's connection being
// closed, stamped by the mock on the clock both share; and that a call which left while it waited
// for a slot never reaches the engine.
#include <fmt/format.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <stdexcept>
#include <string>
#include <vector>

#include "bench/support/load.hpp"
#include "bench/support/main.hpp"
#include "bench/support/mock_control.hpp"
#include "bench/support/programs.hpp"
#include "bench/support/report.hpp"
#include "bench/support/stats.hpp"

namespace werk::bench {
namespace {

constexpr std::uint64_t kPaceUs = 1000;
constexpr std::uint64_t kEndlessTokens = 20'000;

// A client that asks and leaves.
class Caller {
 public:
  Caller(const Endpoint& endpoint, const std::string& request)
      : file_(connect_to(endpoint, Blocking::yes)) {
    if (::send(file_, request.data(), request.size(), MSG_NOSIGNAL) <= 0) {
      throw std::runtime_error("can't send");
    }
  }
  Caller(const Caller&) = delete;
  Caller& operator=(const Caller&) = delete;
  ~Caller() { leave(); }

  void read_some() const {
    std::array<char, 4096> buffer;
    if (::recv(file_, buffer.data(), buffer.size(), 0) <= 0) throw std::runtime_error("cut off");
  }
  // When it left, on the clock of the mock's events.
  std::int64_t leave() {
    const std::int64_t now = steady_us();
    if (file_ >= 0) ::close(file_);
    file_ = -1;
    return now;
  }

 private:
  int file_;
};

struct Phase {
  std::string name;
  Audience audience = Audience::node_stream;
  MockOrder order;
  bool reads_first = false;  // leaves behind the first bytes
};

std::string name_of(Dialect dialect) { return dialect == Dialect::messages ? ", Messages" : ""; }

void report_times(const std::string& name, const std::vector<std::vector<double>>& rounds,
                  const std::string& note) {
  std::vector<Round> p99;
  std::vector<double> all;
  for (std::vector<double> round : rounds) {
    p99.push_back({percentile(round, 0.99), 1});
    all.insert(all.end(), round.begin(), round.end());
  }
  report({"P12", name + ", p99", "ms", summarize(p99), Better::lower, 50, 5,
          fmt::format("{} closes: p50 {:.2f} ms, most {:.2f} ms{}", all.size(),
                      percentile(all, 0.5), percentile(all, 1), note)});
}

void measure_phase(const Setting& setting, const Node& node, MockEvents& events, Dialect dialect,
                   const Phase& phase) {
  const std::string request = mock_request(dialect, "m0", phase.audience, phase.order);
  std::vector<std::vector<double>> rounds;
  for (std::size_t round = 0; round <= setting.rounds(); ++round) {
    std::vector<double> times_ms;
    for (std::size_t i = 0; i < 100; ++i) {
      Caller caller(node.endpoint(), request);
      events.expect("request");
      if (phase.reads_first) caller.read_some();
      for (int pause = 0; pause < 3; ++pause) pause_a_millisecond();
      const std::int64_t left_us = caller.leave();
      const MockEvent closed = events.expect("closed");
      times_ms.push_back(static_cast<double>(closed.at_us - left_us) / 1000);
    }
    if (round > 0) rounds.push_back(std::move(times_ms));
  }
  report_times("client's close to the engine's: " + phase.name + name_of(dialect), rounds, "");
}

void measure_queued(const Setting& setting, const Node& node, MockEvents& events, Dialect dialect) {
  MockOrder held;
  held.hold = "prefill";
  const Caller holder(node.endpoint(), mock_request(dialect, "m0", Audience::node_stream, held));
  events.expect("request");
  const std::string request = mock_request(dialect, "m0", Audience::node_stream, {});
  const std::string look = http_request("GET", "/werk/v1/observability", "");
  const auto waiting = [&](int count) {
    const std::string wanted = fmt::format("\"waiting\":{},\"last_error\"", count);
    return ask(node.endpoint(), look).body.find(wanted) != std::string::npos;
  };
  const auto comes_to = [&](int count) {
    const SteadyTime limit = steady_now() + std::chrono::seconds(10);
    while (!waiting(count)) {
      if (steady_now() > limit) throw std::runtime_error("the line never changed");
    }
  };
  std::vector<std::vector<double>> rounds;
  for (std::size_t round = 0; round <= setting.rounds(); ++round) {
    std::vector<double> times_ms;
    for (std::size_t i = 0; i < 25; ++i) {
      Caller caller(node.endpoint(), request);
      comes_to(1);
      const std::int64_t left_us = caller.leave();
      comes_to(0);
      times_ms.push_back(static_cast<double>(steady_us() - left_us) / 1000);
    }
    if (round > 0) rounds.push_back(std::move(times_ms));
  }
  double reached = 0;
  for (const MockEvent& event : events.take_all()) reached += event.name == "request" ? 1 : 0;
  report_times("client's close to its leaving the line: queued" + name_of(dialect), rounds,
               "; seen by asking the node's status page again and again");
  report({"P12", "queued calls that left and reached the engine" + name_of(dialect), "calls",
          single(reached), Better::equal, 0, 0, ""});
}

void run(const Goals&) {
  const Setting setting = read_setting();
  const Folder folder;
  make_home(setting, folder, "home", {"m0"});
  MockEvents events(folder / "events");
  const std::vector<std::string> environment{"WERK_LLAMA_SERVER=" + setting.mock,
                                             "BENCH_MOCK_TELL=1", events.variable()};
  const auto node_with = [&](const std::string& parallel) {
    return Node(
        setting, folder / "home",
        {"--backend", "llama-cpu", "--log-level", "warn", "--model", "m0", "--parallel", parallel},
        environment, folder / "node.log");
  };
  MockOrder held;
  held.hold = "prefill";
  MockOrder paced;
  paced.tokens = kEndlessTokens;
  paced.pace_us = kPaceUs;
  const std::vector<Phase> phases{{"prefill, stream", Audience::node_stream, held},
                                  {"prefill, whole answer", Audience::node_whole, held},
                                  {"decode, stream", Audience::node_stream, paced, true},
                                  {"decode, whole answer", Audience::node_whole, paced}};
  for (const Dialect dialect : {Dialect::openai, Dialect::messages}) {
    Node free = node_with("256");
    events.expect("ready");
    for (const Phase& phase : phases) measure_phase(setting, free, events, dialect, phase);
    free.stop();
    events.take_all();
    Node full = node_with("1");
    events.expect("ready");
    measure_queued(setting, full, events, dialect);
    full.stop();
    events.take_all();
  }
}

}  // namespace
}  // namespace werk::bench

int main(int count, char** words) {
  return werk::bench::run_main("bench_cancel", count, words, werk::bench::run);
}
