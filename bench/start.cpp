// bench_start: P10. From exec to the first 200 of the model list, in a home with 200 models, beside
// nginx from exec to the first connection that it accepts. Both are looked at every millisecond,
// and what they read lies in the page cache after the discarded round.
#include <fmt/format.h>
#include <unistd.h>

#include <csignal>
#include <memory>
#include <string>
#include <vector>

#include "bench/support/load.hpp"
#include "bench/support/main.hpp"
#include "bench/support/programs.hpp"
#include "bench/support/report.hpp"
#include "bench/support/stats.hpp"

namespace werk::bench {
namespace {

constexpr std::size_t kModels = 200;
constexpr std::size_t kStarts = 30;
constexpr std::chrono::seconds kStartLimit{20};

std::vector<std::string> model_names() {
  std::vector<std::string> names;
  for (std::size_t i = 0; i < kModels; ++i) names.push_back(fmt::format("m{:03}", i));
  return names;
}

bool lists_all(const Answer& answer) {
  return answer.status == 200 && answer.body.find("\"m199\"") != std::string::npos;
}

double milliseconds_to_list(const Setting& setting, const Folder& folder,
                            const std::string& request) {
  const Endpoint endpoint{"", free_port()};
  Child node({setting.werk, "--model-home", (folder / "home").string(), "serve", "--port",
              std::to_string(endpoint.port), "--backend", "llama-cpu", "--log-level", "warn"},
             {"WERK_LLAMA_SERVER=" + setting.mock}, folder / "node.log");
  const auto lists = [&] {
    const int file = try_connect(endpoint, Blocking::yes);
    if (file < 0) return false;
    ::close(file);
    return lists_all(ask(endpoint, request));
  };
  if (!wait_until(lists, kStartLimit)) {
    throw std::runtime_error("the node never listed its models:\n" + node.log_text());
  }
  const double taken = microseconds_between(node.begun(), steady_now()) / 1000;
  node.stop(SIGTERM);
  return taken;
}

double milliseconds_to_accept(const Folder& folder) {
  const Nginx nginx(folder, "nginx", (folder / "nobody.sock").string(), Nginx::AccessLog::off);
  return microseconds_between(nginx.begun(), steady_now()) / 1000;
}

void run(const Goals&) {
  const Setting setting = read_setting();
  const Folder folder;
  make_home(setting, folder, "home", model_names());
  const std::string request = http_request("GET", "/v1/models", "");
  double by_werk = 0;
  double by_nginx = 0;
  std::vector<Round> ratio;
  std::vector<double> werk_ms;
  std::vector<double> nginx_ms;
  alternate(setting.quick ? 7 : kStarts,
            {[&] { by_nginx = milliseconds_to_accept(folder); },
             [&] { by_werk = milliseconds_to_list(setting, folder, request); }},
            [&] {
              ratio.push_back({by_werk / by_nginx, by_nginx});
              werk_ms.push_back(by_werk);
              nginx_ms.push_back(by_nginx);
            });
  report({"P10", "exec to the model list with 200 models, Werk / nginx to accept", "",
          summarize(ratio), Better::lower, 10, 3,
          fmt::format("Werk {:.1f} ms, nginx {:.1f} ms", median(werk_ms), median(nginx_ms))});
}

}  // namespace
}  // namespace werk::bench

int main(int count, char** words) {
  return werk::bench::run_main("bench_start", count, words, werk::bench::run);
}
