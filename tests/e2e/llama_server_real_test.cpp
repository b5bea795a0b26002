// The adapter against a real llama-server with a real model: what fakes can't prove. It takes both
// from WERK_HOME, as the product's own commands put them there, and is skipped, saying why, where
// they are missing.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <csignal>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "tests/support/loop_fixture.hpp"
#include "tests/support/temporary_folder.hpp"
#include "werk/engine/llama_server/llama_server.hpp"
#include "werk/model/store.hpp"
#include "werk/process/program.hpp"

namespace werk::engine::llama_server {
namespace {

constexpr std::string_view kModel = "smollm2";

class RealLlamaServer : public test::LoopFixture {
 protected:
  class Observer final : public StartObserver {
   public:
    void progressed(std::string_view) override {}
  };

  // Skips the test by its reason; empty when all is there.
  std::string what_is_missing() {
    const auto home = process::own_variable("WERK_HOME");
    if (!home) return "WERK_HOME names no home";
    home_ = *home;
    auto found = model::Store(home_).find(kModel);
    if (!found) return fmt_reason(found.error());
    model_ = *found;
    FinderSettings finding;
    finding.home = home_;
    finding.named.any_mode = process::own_variable("WERK_LLAMA_SERVER");
    finding.search_path = process::own_variable("PATH").value_or("");
    finding.environment = process::own_environment();
    finder_ = std::make_unique<Finder>(children_, clock_, offload_, finding);
    Result<Executable> executable = fail(ErrorCode::internal, "not looked for");
    run(find(executable));
    return executable ? "" : fmt_reason(executable.error());
  }

  void make_engine(std::uint32_t parallel, std::uint64_t ctx_size, std::uint32_t threads = 1) {
    LlamaServerSettings settings;
    settings.home = home_.string();
    settings.environment = process::own_environment();
    settings.launch.options.parallel = parallel;
    settings.launch.options.ctx_size = ctx_size;
    settings.launch.options.threads = threads;
    settings.launch.options.threads_batch = threads;
    settings.launch.memory_bytes = 1ull << 30;
    const Services services{executor(), clock_, offload_, children_, sockets_, *finder_};
    engine_ = std::make_unique<LlamaServerEngine>(services, settings);
  }

  Result<std::unique_ptr<Runtime>> start_engine(const model::InstalledModel& model) {
    auto plan = engine_->plan(model.manifest, model.folder);
    if (!plan) return pass_on(plan);
    Result<std::unique_ptr<Runtime>> started = fail(ErrorCode::internal, "not started");
    run(start_and_keep(std::move(*plan), started));
    return started;
  }

  async::awaitable<void> find(Result<Executable>& out) {
    out = co_await finder_->find(Mode::cpu, std::stop_token());
  }
  async::awaitable<void> start_and_keep(StartPlan plan, Result<std::unique_ptr<Runtime>>& out) {
    out = co_await engine_->start(std::move(plan), observer_, std::stop_token());
  }
  static async::awaitable<void> count_busy(Runtime& runtime, Result<std::size_t>& out) {
    out = co_await runtime.busy_slots(std::stop_token());
  }
  static std::string fmt_reason(const Error& error) { return error.message; }

  std::filesystem::path home_;
  model::InstalledModel model_;
  async::SteadyClock clock_{executor()};
  async::Offload offload_{1};
  process::Children children_{executor(), clock_};
  process::SocketFolder sockets_ = *process::SocketFolder::create(process::own_variable);
  std::unique_ptr<Finder> finder_;
  std::unique_ptr<LlamaServerEngine> engine_;
  Observer observer_;
};

TEST_F(RealLlamaServer, LoadsTellsTheTruthAndEndsWhenAsked) {
  if (const std::string missing = what_is_missing(); !missing.empty()) GTEST_SKIP() << missing;
  make_engine(2, 1000);
  auto runtime = start_engine(model_);
  ASSERT_TRUE(runtime.has_value()) << runtime.error().message;
  const RuntimeFacts& facts = (*runtime)->facts();
  EXPECT_EQ(facts.slots, 2u);
  EXPECT_EQ(facts.context_tokens_per_slot, 1024u) << "rounded up to a multiple of 256";
  EXPECT_FALSE(facts.supports_tools) << "its template has none";
  EXPECT_FALSE(facts.supports_images);
  EXPECT_FALSE(facts.engine_version.empty());
  Result<std::size_t> busy = fail(ErrorCode::internal, "not asked");
  run(count_busy(**runtime, busy));
  EXPECT_EQ(busy.value_or(99), 0u);
  run((*runtime)->stop(std::chrono::seconds(20)));
  EXPECT_TRUE((*runtime)->exited().is_set());
  EXPECT_TRUE((*runtime)->exit_reason().starts_with("exit status 0")) << (*runtime)->exit_reason();
  EXPECT_EQ(children_.alive(), 0u);
}

TEST_F(RealLlamaServer, ItsThreadsYieldWhileTheyWaitAndItsEndLeavesNothingInSharedMemory) {
  if (const std::string missing = what_is_missing(); !missing.empty()) GTEST_SKIP() << missing;
  Result<Executable> executable = fail(ErrorCode::internal, "not looked for");
  run(find(executable));
  if (executable->preload.empty()) GTEST_SKIP() << "LLVM's OpenMP isn't here, or is its own";
  make_engine(1, 256, 2);
  auto runtime = start_engine(model_);
  ASSERT_TRUE(runtime.has_value()) << runtime.error().message;
  const pid_t pid = (*runtime)->facts().pid.value();
  std::ifstream maps(fmt::format("/proc/{}/maps", pid));
  const std::string mapped{std::istreambuf_iterator<char>(maps), {}};
  EXPECT_NE(mapped.find("/libomp"), std::string::npos);
  // Killed, it can't tidy up.
  ::kill(pid, SIGKILL);
  run_until([&] { return (*runtime)->exited().is_set(); });
  std::vector<std::string> left;
  const std::string mark = fmt::format("_{}_", pid);
  for (const auto& file : std::filesystem::directory_iterator("/dev/shm")) {
    if (file.path().filename().string().contains(mark)) left.push_back(file.path());
  }
  EXPECT_TRUE(left.empty()) << left.front();
}

TEST_F(RealLlamaServer, AFileThatIsNoModelIsToldAsTheModelsFault) {
  if (const std::string missing = what_is_missing(); !missing.empty()) GTEST_SKIP() << missing;
  // Of the right size for the store's own check, so that the engine meets it.
  const test::TemporaryFolder folder;
  model::InstalledModel cut = model_;
  cut.folder = folder.path();
  std::filesystem::create_directories(folder / "files");
  const model::ManifestFile& weights = cut.manifest.files.front();
  const std::filesystem::path file = cut.path_of(weights);
  if (weights.linked) GTEST_SKIP() << "the model is linked";
  std::FILE* out = std::fopen(file.c_str(), "w");
  ASSERT_NE(out, nullptr);
  std::fputs("GGUF, but no more than that", out);
  std::fclose(out);
  std::filesystem::resize_file(file, weights.size_bytes);
  make_engine(1, 256);
  auto runtime = start_engine(cut);
  ASSERT_FALSE(runtime.has_value());
  EXPECT_EQ(runtime.error().code, ErrorCode::model_unusable) << runtime.error().message;
  EXPECT_EQ(runtime.error().message.find(folder.path().string()), std::string::npos)
      << runtime.error().message;
  EXPECT_EQ(children_.alive(), 0u);
}

}  // namespace
}  // namespace werk::engine::llama_server
