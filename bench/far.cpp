// bench_far: P1 where the engine's server is not llama-server of this node. Output tokens a second
// through a node whose remote is a second node over a real llama-server, and through a node over a
// real vLLM on the processor, each beside the engine over its own socket, with 1 and 4 streaming
// callers in either dialect. Engines get one thread. vLLM's environment and model are those of the
// tests (WERK_TEST_VLLM, WERK_TEST_WORKERS); where they are missing that half says so.
#include <fmt/format.h>

#include <cstdlib>
#include <string>
#include <vector>

#include "bench/support/main.hpp"
#include "bench/support/programs.hpp"
#include "bench/support/report.hpp"
#include "bench/support/stats.hpp"
#include "bench/support/token_rate.hpp"

namespace werk::bench {
namespace {

namespace fs = std::filesystem;

constexpr double kBar = 0.97;
constexpr double kMoonshot = 0.99;

// One engine and the two ways to it.
struct Course {
  std::string name;  // what it goes through
  StoryPlace through;
  StoryPlace direct;
  std::string_view direct_more;  // what the node asks its engine for besides
  std::uint64_t tokens = 0;      // of an answer
  std::uint64_t alone = 1;       // answers in a slice of a single caller
};

void measure(const Setting& setting, const Course& course, std::size_t callers) {
  const auto plan = [&](Dialect dialect, std::string_view more) {
    return StoryPlan{dialect, course.tokens, callers, callers == 1 ? course.alone : 1, more};
  };
  TokenRate direct(course.direct, plan(Dialect::openai, course.direct_more));
  TokenRate openai(course.through, plan(Dialect::openai, {}));
  TokenRate messages(course.through, plan(Dialect::messages, {}));
  std::vector<Round> openai_ratio;
  std::vector<Round> messages_ratio;
  std::vector<double> direct_rates;
  alternate(setting.rounds(),
            {[&] { direct.measure(); }, [&] { openai.measure(); }, [&] { messages.measure(); }},
            [&] {
              openai_ratio.push_back({openai.rate / direct.rate, 1 / direct.rate});
              messages_ratio.push_back({messages.rate / direct.rate, 1 / direct.rate});
              direct_rates.push_back(direct.rate);
            });
  const std::string note = fmt::format("direct {:.1f} tokens/s", median(direct_rates));
  const std::string name = fmt::format("tokens/s through {} / direct: {} caller{}", course.name,
                                       callers, callers == 1 ? "" : "s");
  report({"P1", name, "", summarize(openai_ratio), Better::higher, kBar, kMoonshot, note});
  report({"P1", name + ", Messages", "", summarize(messages_ratio), Better::higher, kBar, kMoonshot,
          note});
}

void measure_remote(const Setting& setting) {
  const Folder folder;
  std::vector<std::string> environment;
  if (!setting.real_engine.empty())
    environment.push_back("WERK_LLAMA_SERVER=" + setting.real_engine);
  const Node far(setting, setting.home,
                 {"--backend", "llama-cpu", "--parallel", "4", "--ctx-size", "1024", "--threads",
                  "1", "--threads-batch", "1", "--model", setting.model, "--log-level", "warn"},
                 environment, folder / "far.log");
  const Node near(setting, folder / "home",
                  {"--remote", fmt::format("far=http://127.0.0.1:{}", far.endpoint().port),
                   "--log-level", "warn"},
                  {}, folder / "near.log");
  Course course{"a remote Werk", {near.endpoint(), setting.model}, {}, {}, 64, 2};
  load_model(near.endpoint(), setting.model);
  const EngineHandle engine = far.engine();
  course.direct = {engine.endpoint(), engine.alias, engine.key};
  course.direct_more = R"("return_progress":true)";
  for (const std::size_t callers : {1, 4}) measure(setting, course, callers);
}

void measure_vllm(const Setting& setting) {
  const char* prepared = std::getenv("WERK_TEST_VLLM");
  const char* workers = std::getenv("WERK_TEST_WORKERS");
  const fs::path python =
      fs::path(prepared == nullptr ? "" : prepared) / "environment" / "bin" / "python";
  const fs::path model = fs::path(workers == nullptr ? "" : workers) / "smollm2-hf";
  if (prepared == nullptr || workers == nullptr || !fs::exists(python) || !fs::exists(model)) {
    return report_left_out(
        "P1 through vLLM: WERK_TEST_VLLM and WERK_TEST_WORKERS name no prepared vLLM and model "
        "(make bench prepares them where they can be had)");
  }
  const Folder folder;
  import_model(setting, folder, "home", model, "hf", {"--link"});
  const Node node(
      setting, folder / "home", {"--backend", "vllm", "--log-level", "warn"},
      {"WERK_VLLM_PYTHON=" + python.string(), "VLLM_CPU_KVCACHE_SPACE=1", "OMP_NUM_THREADS=1",
       "VLLM_CPU_OMP_THREADS_BIND=nobind", "WERK_VLLM_HEALTH_TIMEOUT_SECONDS=600",
       "WERK_VLLM_ARGS=--max-model-len 1024 --dtype float32 --enforce-eager"},
      folder / "node.log");
  // It makes few tokens a second, so its answers are short.
  Course course{"vLLM", {node.endpoint(), "hf"}, {}, {}, 16, 1};
  load_model(node.endpoint(), "hf");
  const EngineHandle engine = node.engine("--uds");
  course.direct = {engine.endpoint(), engine.alias, engine.key};
  for (const std::size_t callers : {1, 4}) measure(setting, course, callers);
}

void run(const Goals&) {
  const Setting setting = read_setting();
  measure_remote(setting);
  measure_vllm(setting);
}

}  // namespace
}  // namespace werk::bench

int main(int count, char** words) {
  return werk::bench::run_main("bench_far", count, words, werk::bench::run);
}
