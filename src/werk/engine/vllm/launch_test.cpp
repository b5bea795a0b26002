#include "werk/engine/vllm/launch.hpp"

#include <gtest/gtest.h>

#include <algorithm>

#include "werk/base/text.hpp"
#include "werk/engine/vllm/facts.hpp"

namespace werk::engine::vllm {
namespace {

model::Manifest model_of(const std::string& id = "small") {
  model::Manifest manifest;
  manifest.id = id;
  manifest.format = "safetensors";
  model::ManifestFile weights;
  weights.path = "files/model.safetensors";
  weights.size_bytes = 10;
  weights.sha256 = std::string(64, 'a');
  manifest.files.push_back(weights);
  return manifest;
}

StartPlan plan_of(const VllmOptions& options) {
  auto plan = plan_start(model_of(), "/store/small", options);
  EXPECT_TRUE(plan.has_value()) << (plan ? "" : plan.error().message);
  return plan.value_or(StartPlan{});
}

VllmOptions with(std::vector<std::string> words) {
  VllmOptions options;
  options.extra_arguments = std::move(words);
  return options;
}

bool holds(const std::vector<std::string>& words, std::string_view word) {
  return std::ranges::find(words, word) != words.end();
}

TEST(VllmLaunch, TheLineIsTheFolderTheServedNameWhatWerkNeedsAndTheUsersWordsAsTheyAre) {
  const StartPlan plan = plan_of(with({"--max-num-seqs", "8", "--gpu-memory-utilization", "0.4"}));
  EXPECT_EQ(shell_line(plan.arguments),
            "serve /store/small/files --served-model-name " + plan.key.alias() +
                " --enable-prompt-tokens-details --max-num-seqs 8 --gpu-memory-utilization 0.4");
  EXPECT_EQ(plan.key.engine, "vllm");
  EXPECT_EQ(plan.slots, 0u) << "Werk bounds none of its calls";
  EXPECT_EQ(plan.context_tokens_per_slot, 0u);
}

TEST(VllmLaunch, TheWordsArePartOfTheRuntimeKeyAndTimeoutsAndLogsAreNot) {
  const VllmOptions plain;
  EXPECT_EQ(plan_of(plain).key, plan_of(VllmOptions{}).key);
  EXPECT_FALSE(plan_of(plain).key == plan_of(with({"--max-num-seqs", "8"})).key);
  EXPECT_FALSE(plan_of(with({"--a", "b"})).key == plan_of(with({"--a b"})).key);
  VllmOptions other;
  other.health_timeout = std::chrono::seconds(5);
  other.log = "/tmp/log";
  EXPECT_EQ(plan_of(plain).key, plan_of(other).key);
  other.python = "/other/python";
  EXPECT_FALSE(plan_of(plain).key == plan_of(other).key);
}

TEST(VllmLaunch, PersistenceAsksForPrefixCachingUnlessTheWordsSpeakOfIt) {
  VllmOptions options;
  EXPECT_FALSE(holds(plan_of(options).arguments, "--enable-prefix-caching"));
  options.prefix_caching = PrefixCaching::asked;
  EXPECT_TRUE(holds(plan_of(options).arguments, "--enable-prefix-caching"));
  for (const char* word : {"--no-enable-prefix-caching", "--no_enable_prefix_caching",
                           "--enable_prefix_caching=false"}) {
    options.extra_arguments = {word};
    const StartPlan plan = plan_of(options);
    EXPECT_FALSE(holds(plan.arguments, "--enable-prefix-caching")) << word;
    EXPECT_EQ(plan.arguments.back(), word);
  }
  VllmOptions asked;
  asked.prefix_caching = PrefixCaching::asked;
  EXPECT_FALSE(plan_of(asked).key == plan_of(VllmOptions{}).key);
}

TEST(VllmLaunch, CachedTokensAreMadeVisibleWhereTheVersionCanAndTheWordsDontSayOtherwise) {
  constexpr std::string_view kFlag = "--enable-prompt-tokens-details";
  const StartPlan plan = plan_of({});
  for (const char* version : {"0.7.0", "0.32.0+cpu", "1.0", "", "dev"})
    EXPECT_TRUE(holds(words_for(plan, version), kFlag)) << version;
  EXPECT_FALSE(holds(words_for(plan, "0.6.6"), kFlag));
  const StartPlan off = plan_of(with({"--no-enable-prompt-tokens-details"}));
  EXPECT_FALSE(holds(off.arguments, kFlag));
}

TEST(VllmLaunch, WordsThatTakeTheEngineOutOfWerksHandsAreRefused) {
  for (const char* word : {"--host", "--port=8000", "--uds", "--api_key=x", "--served-model-name",
                           "--served_model_name=y", "--model", "--config"}) {
    const auto plan = plan_start(model_of(), "/store/small", with({word}));
    ASSERT_FALSE(plan.has_value()) << word;
    EXPECT_EQ(plan.error().code, ErrorCode::invalid_request);
    EXPECT_NE(plan.error().message.find("which Werk itself decides"), std::string::npos);
  }
  model::Manifest empty = model_of();
  empty.files.clear();
  EXPECT_EQ(plan_start(empty, "/store/small", {}).error().code, ErrorCode::model_unusable);
}

TEST(VllmLaunch, TheEnvironmentKeepsItsCapacityAndLosesOurSecrets) {
  const std::vector<std::string> own = {"PATH=/bin",          "VLLM_CPU_KVCACHE_SPACE=1",
                                        "VLLM_API_KEY=old",   "VLLM_SERVER_DEV_MODE=1",
                                        "WERK_API_KEY=mine",  "HF_TOKEN=t",
                                        "OPENAI_API_KEY=sk-1"};
  const std::vector<std::string> told = child_environment(own, "secret");
  EXPECT_TRUE(holds(told, "PATH=/bin"));
  EXPECT_TRUE(holds(told, "VLLM_CPU_KVCACHE_SPACE=1"));
  EXPECT_TRUE(holds(told, "VLLM_API_KEY=secret"));
  EXPECT_TRUE(holds(told, "HF_HUB_OFFLINE=1"));
  for (const char* head :
       {"VLLM_API_KEY=old", "VLLM_SERVER_DEV_MODE", "WERK_API_KEY", "HF_TOKEN", "OPENAI_"}) {
    EXPECT_TRUE(std::ranges::none_of(told, [&](const std::string& entry) {
      return entry.starts_with(head);
    })) << head;
  }
}

TEST(VllmFacts, TheServedNameAndTheLongestContextAreReadAndAStrangerIsNamed) {
  constexpr std::string_view kModels =
      R"({"data":[{"id":"werk-1","object":"model","root":"/x","max_model_len":2048}]})";
  const auto served = check_serves(kModels, "werk-1");
  ASSERT_TRUE(served.has_value());
  EXPECT_EQ(served->context_tokens, 2048u);
  const auto stranger = check_serves(R"({"data":[{"id":"/home/me/qwen"}]})", "werk-1");
  ASSERT_FALSE(stranger.has_value());
  EXPECT_EQ(stranger.error().message,
            "vLLM came up but serves another model than the one asked for (qwen)");
  EXPECT_FALSE(check_serves("<html>", "werk-1").has_value());
  EXPECT_EQ(version_in(R"({"version":"0.32.0"})"), "0.32.0");
  EXPECT_EQ(version_in("oops"), "");
}

TEST(VllmFacts, OfATracebackTheErrorsAreToldAndNotThePath) {
  constexpr std::string_view kOutput =
      "(APIServer pid=7) INFO 11-30 14:36:31 [compilation.py:317] Enabled custom fusions\n"
      "(EngineCore pid=9) ERROR 11-30 14:39:34 [core.py:906] Traceback (most recent call last):\n"
      "(EngineCore pid=9) ERROR 11-30 14:39:34 [core.py:906]   File \"/venv/x.py\", line 849, in "
      "f\n"
      "(EngineCore pid=9) ERROR 11-30 14:39:34 [core.py:906] ValueError: no room for the cache\n"
      "(APIServer pid=7) RuntimeError: Engine core initialization failed.\n";
  EXPECT_EQ(telling_lines(kOutput, 600),
            "ValueError: no room for the cache | RuntimeError: Engine core initialization failed.");
  EXPECT_EQ(telling_lines("one\ntwo\n", 600), "one | two");
  EXPECT_EQ(telling_lines("", 600), "");
  EXPECT_EQ(start_failure("exit status 1", kOutput).code, ErrorCode::start_failed);
  const Error unusable =
      start_failure("exit status 1",
                    "ValueError: Model architectures ['X'] are not supported for "
                    "now. Supported architectures: ...\n");
  EXPECT_EQ(unusable.code, ErrorCode::model_unusable);
  EXPECT_TRUE(
      unusable.message.starts_with("vLLM ended during its start (exit status 1): "
                                   "ValueError: Model architectures ['X']"));
}

}  // namespace
}  // namespace werk::engine::vllm
