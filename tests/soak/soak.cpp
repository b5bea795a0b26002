// A long run of the real node over fake engines: callers that leave at random, engines that are
// killed, unloaded and evicted at random, from one seed. In the end memory, descriptors and
// children must be back where they were, and the node must have counted each call that clients
// made. Prints a verdict; status 1 on a miss. `make soak`.
#include <signal.h>

#include <array>
#include <chrono>
#include <cstdlib>
#include <iostream>
#include <random>

#include "tests/e2e/metrics_page.hpp"
#include "tests/e2e/test_node.hpp"
#include "tests/soak/callers.hpp"

namespace werk::test {
namespace {

namespace json = boost::json;
using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

constexpr std::size_t kCallers = 4;
constexpr std::uint64_t kMemoryGrowthMax = 12u << 20;

std::uint64_t number_of(const char* variable, std::uint64_t otherwise) {
  const char* text = std::getenv(variable);
  return text != nullptr ? std::stoull(text) : otherwise;
}

// What must be back where it was.
struct Level {
  std::uint64_t memory_bytes = 0;
  std::uint64_t open_files = 0;
  std::size_t processes = 0;
};

class Soak {
 public:
  Soak(std::chrono::seconds length, std::uint64_t seed)
      : length_(length),
        random_(seed),
        node_({.models = {{"a"}, {"b"}, {"c"}},
               .engine = {{"reply", {{"tokens", 40}, {"pace_us", 4'000}}}},
               .arguments = {"--parallel", "2", "--max-resident", "2", "--log-level", "info"}}) {}

  int run() {
    // What a node has met once it keeps: threads, caches, buffers.
    work(std::max<std::chrono::seconds>(length_ / 10, 5s));
    const Level before = settled();
    work(length_);
    const Level after = settled();
    const bool level = judge(before, after);
    const bool accounts = account();
    const bool good = level && accounts && seen_.broken == 0 && seen_.whole > 0;
    std::cout << (good ? "soak: passed\n" : "soak: FAILED\n");
    return good ? 0 : 1;
  }

 private:
  void work(std::chrono::seconds time) {
    Callers callers(node_.port(), kCallers, random_());
    const auto end = Clock::now() + time;
    while (Clock::now() < end) {
      callers.wait_for(1 + random_() % 10);
      disturb();
    }
    seen_ += callers.stop();
  }

  void disturb() {
    constexpr std::array kModels = {"a", "b", "c"};
    const std::string model = kModels[random_() % kModels.size()];
    const std::uint64_t what = random_() % 4;
    if (what == 0) {
      const json::object runtime = runtime_of(node_.observability(), model);
      if (runtime.empty() || !runtime.at("pid").is_number()) return;
      ::kill(runtime.at("pid").to_number<pid_t>(), SIGKILL);
      ++killed_;
    } else if (what == 1) {
      act(model, "unload?now");
    } else if (what == 2) {
      act(model, "unload");
    } else {
      act(model, "pin");
      act(model, "unpin");
    }
  }

  static double uptime(const json::object& page) {
    return page.at("node").at("uptime_s").to_number<double>();
  }

  void act(const std::string& model, const std::string& what) {
    HttpCall(node_.port(), "POST", "/werk/v1/models/" + model + "/" + what).whole_body();
  }

  // The node at rest: no call, no runtime.
  Level settled() {
    node_.await_observability(
        [](const json::object& page) { return number_in(page, "calls", "active") == 0; });
    for (const char* model : {"a", "b", "c"}) act(model, "unload");
    node_.await_no_runtimes();
    // Connections of clients that left end at the next look at them.
    const double now = uptime(node_.await_observability(
        [](const json::object& page) { return number_in(page, "node", "connections") <= 1; }));
    // What the page says of the process may be a second old.
    const json::object last = node_.await_observability(
        [now](const json::object& page) { return uptime(page) > now + 1.5; });
    return {number_in(last, "node", "memory_bytes"), number_in(last, "node", "open_files"),
            node_.engines().living().size()};
  }

  static bool judge(const Level& before, const Level& after) {
    const bool memory = after.memory_bytes <= before.memory_bytes + kMemoryGrowthMax;
    const bool files = after.open_files <= before.open_files;
    const bool processes = after.processes == 1 && before.processes == 1;
    std::cout << "memory      " << before.memory_bytes / 1024 << " KiB, then "
              << after.memory_bytes / 1024 << " KiB" << (memory ? "" : "  <- grew") << "\n"
              << "descriptors " << before.open_files << ", then " << after.open_files
              << (files ? "" : "  <- grew") << "\n"
              << "processes   " << before.processes << ", then " << after.processes
              << (processes ? "" : "  <- one was left") << "\n";
    return memory && files && processes;
  }

  // A call whose client left may have been served, refused or cancelled; all others are what their
  // clients saw.
  bool account() {
    const MetricsPage page(node_.get("/metrics").whole_body());
    const auto ended = [&page](std::string_view outcome) {
      return static_cast<std::uint64_t>(page.sum("werk_calls_total", {outcome}));
    };
    const std::uint64_t served = ended(R"(outcome="served")");
    const std::uint64_t failed = ended(R"(outcome="failed")");
    const std::uint64_t cancelled = ended(R"(outcome="cancelled")");
    const bool all = served + failed + cancelled == seen_.made;
    const bool each = served >= seen_.whole && failed >= seen_.refused && cancelled <= seen_.left;
    std::cout << "clients     " << seen_.made << " calls: " << seen_.whole << " whole, "
              << seen_.refused << " refused, " << seen_.left << " left, " << seen_.broken
              << " broken\n"
              << "node        " << served + failed + cancelled << " calls: " << served
              << " served, " << failed << " failed, " << cancelled << " cancelled"
              << (all && each ? "" : "  <- not the same calls") << "\n"
              << "engines     " << page.sum("werk_runtime_starts_total") << " started, "
              << page.sum("werk_runtime_deaths_total") << " died (" << killed_ << " killed), "
              << page.sum("werk_runtime_evictions_total") << " evicted or unloaded\n";
    return all && each;
  }

  std::chrono::seconds length_;
  std::mt19937_64 random_;
  TestNode node_;
  Seen seen_;
  std::uint64_t killed_ = 0;
};

int soak() {
  constexpr std::uint64_t kHalfAnHour = 1800;
  const std::chrono::seconds length(number_of("SOAK_SECONDS", kHalfAnHour));
  const std::uint64_t seed = number_of("SOAK_SEED", std::random_device()());
  std::cout << "soak: " << length.count() << " s at " << kCallers << " callers; SOAK_SEED=" << seed
            << "\n"
            << std::flush;  // seen at once, in a file too
  return Soak(length, seed).run();
}

}  // namespace
}  // namespace werk::test

int main() {
  try {
    return werk::test::soak();
  } catch (const std::exception& error) {
    std::cerr << "soak: FAILED: " << error.what() << "\n";
    return 1;
  }
}
