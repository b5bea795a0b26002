// bench_cancel: P12 (OpenAI half). How long from a client's close to the engine's connection being
// closed, stamped by the mock on the clock both share; and that a call which left while it waited
// for a slot never reaches the engine.
#include <fmt/format.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <exception>
#include <stdexcept>
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

std::string request_for(const Phase& phase) {
  return http_request("POST", kTarget, mock_body("m0", phase.audience, phase.order));
}

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

void measure_phase(const Setting& setting, const Node& node, MockEvents& events,
                   const Phase& phase) {
  const std::string request = request_for(phase);
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
  report_times("client's close to the engine's: " + phase.name, rounds, "");
}

void measure_queued(const Setting& setting, const Node& node, MockEvents& events) {
  MockOrder held;
  held.hold = "prefill";
  const std::string holding =
      http_request("POST", kTarget, mock_body("m0", Audience::node_stream, held));
  const Caller holder(node.endpoint(), holding);
  events.expect("request");
  const std::string request =
      http_request("POST", kTarget, mock_body("m0", Audience::node_stream, {}));
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
  report_times("client's close to its leaving the line: queued", rounds,
               "; seen by asking the node's status page again and again");
  report({"P12", "queued calls that left and reached the engine", "calls", single(reached),
          Better::equal, 0, 0, ""});
}

int run() {
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
  {
    Node node = node_with("256");
    events.expect("ready");
    measure_phase(setting, node, events, {"prefill, stream", Audience::node_stream, held});
    measure_phase(setting, node, events, {"prefill, whole answer", Audience::node_whole, held});
    measure_phase(setting, node, events, {"decode, stream", Audience::node_stream, paced, true});
    measure_phase(setting, node, events, {"decode, whole answer", Audience::node_whole, paced});
    node.stop();
  }
  events.take_all();
  Node node = node_with("1");
  events.expect("ready");
  measure_queued(setting, node, events);
  node.stop();
  return 0;
}

}  // namespace
}  // namespace werk::bench

int main() {
  try {
    return werk::bench::run();
  } catch (const std::exception& error) {
    fmt::print(stderr, "bench_cancel: {}\n", error.what());
    return 1;
  }
}
