#include "werk/engine/llama_server/launch.hpp"

#include <gtest/gtest.h>

#include "werk/base/text.hpp"
#include "werk/process/program.hpp"

namespace werk::engine::llama_server {
namespace {

constexpr std::uint64_t kGib = 1024ull * 1024 * 1024;

model::Manifest small_model() {
  model::Manifest manifest;
  manifest.id = "smollm2";
  manifest.architecture = "llama";
  manifest.training_context_tokens = 8192;
  model::ManifestFile file;
  file.path = "files/small.gguf";
  file.size_bytes = 1000;
  file.sha256 = std::string(64, 'a');
  manifest.files.push_back(file);
  return manifest;
}

LaunchSettings settings_for(Mode mode) {
  LaunchSettings settings;
  settings.mode = mode;
  settings.memory_bytes = 16 * kGib;
  return settings;
}

// The value after the word; empty without the word.
std::string value_of(const std::vector<std::string>& words, std::string_view word) {
  const auto found = std::find(words.begin(), words.end(), word);
  return found == words.end() || found + 1 == words.end() ? "" : *(found + 1);
}

bool holds(const std::vector<std::string>& words, std::string_view word) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

StartPlan plan_of(const model::Manifest& manifest, const LaunchSettings& settings) {
  auto plan = plan_start(manifest, "/home/models/smollm2", settings);
  EXPECT_TRUE(plan.has_value()) << (plan ? "" : plan.error().message);
  return plan.value_or(StartPlan{});
}

Executable executable_with(std::set<std::string, std::less<>> flags) {
  Executable executable;
  executable.path = "/usr/bin/llama-server";
  executable.version.build = 4000;
  executable.flags = std::move(flags);
  return executable;
}

TEST(Launch, TheWholeLineForTheDefaults) {
  const StartPlan plan = plan_of(small_model(), settings_for(Mode::cpu));
  const std::string expected =
      "-m /home/models/smollm2/files/small.gguf --alias " + plan.key.alias() +
      " -np 1 -no-kvu -c 8192 -b 512 --threads-http 9 -fit off --metrics --slots --no-ui --offline "
      "--cors-origins localhost --jinja --cache-ram 1024";
  EXPECT_EQ(shell_line(plan.arguments), expected);
  EXPECT_EQ(plan.slots, 1u);
  EXPECT_EQ(plan.context_tokens_per_slot, 8192u);
}

struct SizingRow {
  std::string name;
  std::uint32_t parallel;
  std::optional<std::uint64_t> ctx_size;
  std::uint64_t trained;
  std::vector<std::string> extra;
  std::string np;  // on the launch line; empty: Werk passes none
  std::string c;
  std::size_t slots;
  std::uint64_t per_slot;
};

TEST(Launch, SizesFollowTheContract) {
  const std::vector<SizingRow> rows{
      {"four of 8192", 4, 8192, 131072, {}, "4", "32768", 4, 8192},
      {"unset takes the training context", 2, {}, 8192, {}, "2", "16384", 2, 8192},
      {"unset stops at 32768", 2, {}, 131072, {}, "2", "65536", 2, 32768},
      {"zero leaves it to the engine", 4, 0, 8192, {}, "4", "0", 4, 0},
      {"exactly the training context", 1, 8192, 8192, {}, "1", "8192", 1, 8192},
      {"an unknown training context and nothing set", 1, {}, 0, {}, "1", "0", 1, 0},
      {"an unknown training context", 1, 4096, 0, {}, "1", "4096", 1, 4096},
      {"own slots win, context is per slot",
       1,
       2048,
       8192,
       {"--parallel", "3"},
       "",
       "6144",
       3,
       2048},
      {"own context wins", 4, 2048, 8192, {"-c", "4096"}, "4", "", 4, 1024},
      {"both win, the last counts",
       4,
       2048,
       8192,
       {"-np", "8", "-np", "2", "--ctx-size", "512"},
       "",
       "",
       2,
       256},
      {"a context beyond training is the user's own matter",
       1,
       {},
       8192,
       {"-c", "65536"},
       "1",
       "",
       1,
       65536},
  };
  for (const SizingRow& row : rows) {
    SCOPED_TRACE(row.name);
    model::Manifest manifest = small_model();
    manifest.training_context_tokens = row.trained;
    LaunchSettings settings = settings_for(Mode::cpu);
    settings.options.parallel = row.parallel;
    settings.options.ctx_size = row.ctx_size;
    settings.options.extra_arguments = row.extra;
    const StartPlan plan = plan_of(manifest, settings);
    const std::vector<std::string> own(
        plan.arguments.begin(),
        plan.arguments.end() - static_cast<std::ptrdiff_t>(row.extra.size()));
    EXPECT_EQ(value_of(own, "-np"), row.np);
    EXPECT_EQ(value_of(own, "-c"), row.c);
    EXPECT_EQ(plan.slots, row.slots);
    EXPECT_EQ(plan.context_tokens_per_slot, row.per_slot);
    EXPECT_EQ(value_of(own, "--threads-http"), std::to_string(row.slots + 8));
  }
}

TEST(Launch, ThreadsThatYieldGetAllCoresAndThoseThatSpinAPartUnlessTheirNumberIsNamed) {
  LaunchSettings settings = settings_for(Mode::cpu);
  settings.options.threads.reset();
  settings.default_threads = {.spinning = 3, .yielding = 6};
  Executable spins = executable_with({});
  spins.openmp = OpenMp::gnu;
  Executable yields = executable_with({});
  yields.openmp = OpenMp::llvm;
  const auto threads_of = [](const LaunchSettings& launch, const Executable& executable) {
    return value_of(*words_for(plan_of(small_model(), launch), launch, executable), "-t");
  };
  EXPECT_EQ(threads_of(settings, spins), "3");
  EXPECT_EQ(threads_of(settings, executable_with({})), "3") << "llama.cpp's own threads spin too";
  EXPECT_EQ(threads_of(settings, yields), "6");
  LaunchSettings named = settings;
  named.options.threads = 5;
  EXPECT_EQ(threads_of(named, yields), "5");
  EXPECT_EQ(plan_of(small_model(), settings).key, plan_of(small_model(), named).key);
  LaunchSettings accelerated = settings_for(Mode::cuda);
  accelerated.options.threads.reset();
  accelerated.default_threads = settings.default_threads;
  EXPECT_EQ(threads_of(accelerated, yields), "");
}

TEST(Launch, WordsOfTheUsersOwnComeAfterTheNumberOfThreads) {
  LaunchSettings settings = settings_for(Mode::cpu);
  settings.options.threads.reset();
  settings.options.extra_arguments = {"-t", "7"};
  settings.default_threads = {.spinning = 3, .yielding = 6};
  const auto words = words_for(plan_of(small_model(), settings), settings, executable_with({}));
  ASSERT_TRUE(words.has_value());
  EXPECT_TRUE(shell_line(*words).ends_with(" -t 3 -t 7")) << shell_line(*words);
}

TEST(Launch, LlvmsOpenMpIsLoadedFirstWhereThreadsWaitForOneAnother) {
  LaunchSettings settings = settings_for(Mode::cpu);
  settings.options.threads.reset();
  settings.default_threads = {.spinning = 1, .yielding = 2};
  Executable executable = executable_with({});
  executable.openmp = OpenMp::llvm;
  const std::vector<std::string> own{"HOME=/h", "LD_PRELOAD=libown.so"};
  const auto preload = [&] {
    return process::variable_in(child_environment(own, "", settings, executable), "LD_PRELOAD");
  };
  EXPECT_EQ(preload(), "libown.so") << "it is LLVM's by itself";
  executable.preload = "libomp.so.5";
  EXPECT_EQ(preload(), "libomp.so.5:libown.so");
  settings.options.threads = 1;
  EXPECT_EQ(preload(), "libown.so") << "one thread waits for none";
  settings.options.threads_batch = 4;
  EXPECT_EQ(preload(), "libomp.so.5:libown.so");
  settings.mode = Mode::cuda;
  EXPECT_EQ(preload(), "libown.so");
}

TEST(Launch, MoreThanTheTrainingContextIsRefusedWithBothNumbers) {
  LaunchSettings settings = settings_for(Mode::cpu);
  settings.options.ctx_size = 16384;
  const auto plan = plan_start(small_model(), "/home/models/smollm2", settings);
  ASSERT_FALSE(plan.has_value());
  EXPECT_EQ(plan.error().code, ErrorCode::model_unusable);
  EXPECT_NE(plan.error().message.find("16384"), std::string::npos);
  EXPECT_NE(plan.error().message.find("8192"), std::string::npos);
}

TEST(Launch, AProductThatTheEngineCannotCountIsRefused) {
  model::Manifest manifest = small_model();
  manifest.training_context_tokens = 0;
  LaunchSettings settings = settings_for(Mode::cpu);
  settings.options.ctx_size = 0xFFFF'FFFF'FFFFull;
  settings.options.parallel = 4;
  const auto plan = plan_start(manifest, "/home/models/smollm2", settings);
  ASSERT_FALSE(plan.has_value());
  EXPECT_EQ(plan.error().code, ErrorCode::invalid_request);
}

TEST(Launch, AModelWithoutWeightsIsUnusable) {
  model::Manifest manifest = small_model();
  manifest.files.clear();
  const auto plan = plan_start(manifest, "/home/models/smollm2", settings_for(Mode::cpu));
  ASSERT_FALSE(plan.has_value());
  EXPECT_EQ(plan.error().code, ErrorCode::model_unusable);
}

TEST(Launch, EveryOptionReachesTheLineAndExtraWordsComeLast) {
  LaunchSettings settings = settings_for(Mode::cuda);
  settings.options.batch_size = 1024;
  settings.options.ubatch_size = 256;
  settings.options.threads = 3;
  settings.options.threads_batch = 5;
  settings.options.gpu_layers = "all";
  settings.options.main_gpu = 1;
  settings.options.kv_cache_type = "q8_0";
  settings.options.flash_attn = "on";
  settings.options.kv_offload = Switch::off;
  settings.options.extra_arguments = {"--mlock", "--seed", "7"};
  const StartPlan plan = plan_of(small_model(), settings);
  const std::string line = shell_line(plan.arguments);
  EXPECT_NE(
      line.find(
          " -b 1024 -ub 256 -t 3 -tb 5 --threads-http 9 -ngl all -mg 1 -ctk q8_0 -ctv q8_0 -fa on "
          "-nkvo --metrics"),
      std::string::npos)
      << line;
  EXPECT_TRUE(line.ends_with(" --mlock --seed 7")) << line;
  EXPECT_FALSE(holds(plan.arguments, "-fit")) << "fitting may choose the layers of an accelerator";
}

TEST(Launch, AcceleratorsKeepTheEnginesOwnBatch) {
  EXPECT_FALSE(holds(plan_of(small_model(), settings_for(Mode::cuda)).arguments, "-b"));
}

TEST(Launch, AProjectorIsPassedAndALinkedFileKeepsItsPath) {
  model::Manifest manifest = small_model();
  manifest.files[0].linked = true;
  manifest.files[0].path = "/elsewhere/big.gguf";
  model::ManifestFile projector;
  projector.role = model::FileRole::projector;
  projector.path = "files/mmproj.gguf";
  manifest.files.push_back(projector);
  const StartPlan plan = plan_of(manifest, settings_for(Mode::cpu));
  EXPECT_EQ(value_of(plan.arguments, "-m"), "/elsewhere/big.gguf");
  EXPECT_EQ(value_of(plan.arguments, "-mm"), "/home/models/smollm2/files/mmproj.gguf");
}

TEST(Launch, TheKeyCoversWhatChangesBehaviourAndNothingElse) {
  const model::Manifest manifest = small_model();
  const LaunchSettings base = settings_for(Mode::cpu);
  const RuntimeKey key = plan_of(manifest, base).key;

  LaunchSettings same = base;
  same.options.threads = 1;
  same.options.threads_batch = 2;
  same.options.ctx_size = 8192;  // what unset comes to
  same.options.batch_size = 512;
  EXPECT_EQ(plan_of(manifest, same).key, key);
  EXPECT_EQ(plan_start(manifest, "/another/home", base)->key, key);
  model::Manifest renamed = manifest;
  renamed.id = "another name";
  EXPECT_EQ(plan_of(renamed, base).key, key) << "two ids over equal files share one runtime";

  std::vector<LaunchSettings> others(7, base);
  others[0].options.parallel = 2;
  others[1].options.ctx_size = 4096;
  others[2].options.batch_size = 256;
  others[3].options.flash_attn = "off";
  others[4].options.kv_cache_type = "q8_0";
  others[5].options.extra_arguments = {"--mlock"};
  others[6].options.kv_offload = Switch::on;
  for (std::size_t i = 0; i < others.size(); ++i) {
    EXPECT_NE(plan_of(manifest, others[i]).key, key) << i;
  }
  EXPECT_NE(plan_of(manifest, settings_for(Mode::vulkan)).key, key);
  LaunchSettings joined = base;
  joined.options.extra_arguments = {"--a", "b"};
  LaunchSettings split = base;
  split.options.extra_arguments = {"--a b"};
  EXPECT_NE(plan_of(manifest, joined).key, plan_of(manifest, split).key);
}

TEST(Launch, WordsThatTakeTheEngineOutOfOurHandsAreRefused) {
  for (const char* word : {"--host", "--port", "--api-key", "-m", "--alias", "--api-prefix"}) {
    LlamaServerOptions options;
    options.extra_arguments = {word, "x"};
    const Status checked = check_options(options);
    ASSERT_FALSE(checked.has_value()) << word;
    EXPECT_NE(checked.error().message.find(word), std::string::npos);
  }
}

TEST(Launch, SettingsThatCanNeverWorkAreRefusedByName) {
  const auto refused = [](auto change, std::string_view name) {
    LlamaServerOptions options;
    change(options);
    const Status checked = check_options(options);
    ASSERT_FALSE(checked.has_value()) << name;
    EXPECT_EQ(checked.error().code, ErrorCode::invalid_request);
    EXPECT_NE(checked.error().message.find(name), std::string::npos) << checked.error().message;
  };
  refused([](LlamaServerOptions& o) { o.parallel = 0; }, "--parallel");
  refused([](LlamaServerOptions& o) { o.parallel = 100'000; }, "--parallel");
  refused([](LlamaServerOptions& o) { o.batch_size = 0; }, "--batch-size");
  refused([](LlamaServerOptions& o) { o.threads = 0; }, "--threads");
  refused([](LlamaServerOptions& o) { o.gpu_layers = "many"; }, "--gpu-layers");
  refused([](LlamaServerOptions& o) { o.kv_cache_type = "q9"; }, "--kv-cache-type");
  refused([](LlamaServerOptions& o) { o.flash_attn = "yes"; }, "--flash-attn");
}

TEST(Launch, AnOldExecutableIsNotGivenWhatItDoesNotKnow) {
  LaunchSettings settings = settings_for(Mode::cpu);
  settings.options.extra_arguments = {"--jinja"};  // the user's own word is not touched
  const StartPlan plan = plan_of(small_model(), settings);
  const Executable old =
      executable_with({"-m", "--model", "-np", "--parallel", "-c", "--metrics", "--no-webui"});
  const auto words = words_for(plan, settings, old);
  ASSERT_TRUE(words.has_value());
  EXPECT_EQ(shell_line(*words), "-m /home/models/smollm2/files/small.gguf --alias " +
                                    plan.key.alias() +
                                    " -np 1 -c 8192 -b 512 --metrics --no-webui --jinja");
}

TEST(Launch, WithoutParallelMoreThanOneSlotIsRefusedByName) {
  LaunchSettings settings = settings_for(Mode::cpu);
  const Executable old = executable_with({"-m", "-c"});
  EXPECT_TRUE(words_for(plan_of(small_model(), settings), settings, old).has_value());
  settings.options.parallel = 2;
  const auto words = words_for(plan_of(small_model(), settings), settings, old);
  ASSERT_FALSE(words.has_value());
  EXPECT_NE(words.error().message.find("--parallel"), std::string::npos);
}

TEST(Launch, EachModeSeesItsOwnDevicesOnly) {
  Executable both = executable_with({"--device", "-np"});
  both.devices = {{"CUDA0", "a"}, {"CUDA1", "b"}, {"Vulkan0", "a"}};
  const auto device = [&both](Mode mode) {
    const LaunchSettings settings = settings_for(mode);
    return value_of(*words_for(plan_of(small_model(), settings), settings, both), "--device");
  };
  EXPECT_EQ(device(Mode::cpu), "none");
  EXPECT_EQ(device(Mode::cuda), "CUDA0,CUDA1");
  EXPECT_EQ(device(Mode::vulkan), "Vulkan0");
  both.devices.pop_back();
  EXPECT_EQ(device(Mode::cuda), "");
}

TEST(Launch, TheChildsEnvironmentHoldsNoStrayWord) {
  const std::vector<std::string> own{"PATH=/bin",           "LLAMA_ARG_CTX_SIZE=1",
                                     "LLAMA_API_KEY=old",   "HF_TOKEN=secret",
                                     "WERK_API_KEY=secret", "MTMD_BACKEND_DEVICE=x",
                                     "HOME=/root",          "CUDA_VISIBLE_DEVICES=0"};
  EXPECT_EQ(child_environment(own, "new", settings_for(Mode::cpu), executable_with({})),
            (std::vector<std::string>{"PATH=/bin", "HOME=/root", "CUDA_VISIBLE_DEVICES=0",
                                      "HF_HUB_OFFLINE=1", "LLAMA_API_KEY=new"}));
}

TEST(Launch, ThePromptCacheIsASixteenthOfTheMachineAndAtMost8Gib) {
  LaunchSettings settings = settings_for(Mode::cpu);
  settings.memory_bytes = 24 * kGib;
  EXPECT_EQ(value_of(plan_of(small_model(), settings).arguments, "--cache-ram"), "1536");
  settings.memory_bytes = 512 * kGib;
  EXPECT_EQ(value_of(plan_of(small_model(), settings).arguments, "--cache-ram"), "8192");
}

TEST(Launch, TheLargestContextThatFitsCanBeTold) {
  model::Manifest manifest = small_model();
  EXPECT_EQ(largest_context(manifest, 1, kGib), std::nullopt) << "the shape is not known";
  manifest.shape.kv_heads_total = 2;
  manifest.shape.key_length = 64;
  manifest.shape.value_length = 64;
  const std::uint64_t per_token = model::kv_bytes_per_token(manifest.shape);
  ASSERT_GT(per_token, 0u);
  const std::uint64_t weights = model::total_bytes(manifest);
  EXPECT_EQ(largest_context(manifest, 2, weights + per_token * 2 * 1000), 768u);
  EXPECT_EQ(largest_context(manifest, 2, weights + per_token * 2 * 100), std::nullopt);
  EXPECT_EQ(largest_context(manifest, 2, weights), std::nullopt);
}

TEST(Launch, FilesOfTheUsersOwnReplaceTheModelsAndChangeTheKey) {
  model::Manifest manifest = small_model();
  model::ManifestFile projector;
  projector.role = model::FileRole::projector;
  projector.path = "files/mmproj.gguf";
  projector.sha256 = std::string(64, 'b');
  manifest.files.push_back(projector);
  const StartPlan plain = plan_of(manifest, settings_for(Mode::cpu));
  EXPECT_EQ(value_of(plain.arguments, "-mm"), "/home/models/smollm2/files/mmproj.gguf");

  LaunchSettings settings = settings_for(Mode::cpu);
  settings.options.projector = OwnFile{"/own/mmproj.gguf", "1-2", 1};
  settings.options.chat_template = OwnFile{"/own/chat.jinja", "digest", 1};
  const StartPlan own = plan_of(manifest, settings);
  EXPECT_EQ(value_of(own.arguments, "-mm"), "/own/mmproj.gguf");
  EXPECT_EQ(value_of(own.arguments, "--chat-template-file"), "/own/chat.jinja");
  EXPECT_NE(own.key, plain.key);

  // The same content elsewhere is the same runtime; other content at the same place is another.
  settings.options.chat_template = OwnFile{"/moved/chat.jinja", "digest", 1};
  EXPECT_EQ(plan_of(manifest, settings).key, own.key);
  settings.options.chat_template = OwnFile{"/moved/chat.jinja", "changed", 1};
  EXPECT_NE(plan_of(manifest, settings).key, own.key);
}

TEST(Launch, AnExecutableOfTheModelsOwnChangesTheKeyAlone) {
  LaunchSettings settings = settings_for(Mode::cpu);
  const StartPlan plain = plan_of(small_model(), settings);
  settings.options.executable = "/own/llama-server";
  const StartPlan own = plan_of(small_model(), settings);
  EXPECT_NE(own.key, plain.key);
  EXPECT_EQ(own.arguments.size(), plain.arguments.size());
}

}  // namespace
}  // namespace werk::engine::llama_server
