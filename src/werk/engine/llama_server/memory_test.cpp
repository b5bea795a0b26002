#include "werk/engine/llama_server/memory.hpp"

#include <gtest/gtest.h>

namespace werk::engine::llama_server {
namespace {

constexpr std::uint64_t kMib = 1024 * 1024;

StartPlan plan(std::vector<std::string> arguments) {
  StartPlan plan;
  plan.manifest.shape = {30, 576, 9, 90, 64, 64};
  plan.manifest.files = {{model::FileRole::weights, "w", 1000, "", false, 0},
                         {model::FileRole::projector, "p", 100, "", false, 0},
                         {model::FileRole::other, "licence", 5, "", false, 0}};
  plan.slots = 4;
  plan.context_tokens_per_slot = 1024;
  plan.arguments = std::move(arguments);
  return plan;
}

TEST(Memory, CountsWeightsKeysAndValuesOfAllSlotsAndThePromptCache) {
  const MemoryEstimate estimate = memory_of(plan({"--cache-ram", "512"}), {});
  EXPECT_EQ(estimate.weights_bytes, 1100u);
  EXPECT_EQ(estimate.kv_tokens, 4096u);
  EXPECT_EQ(estimate.kv_bytes, 90u * 128 * 2 * 4096);
  EXPECT_EQ(estimate.prompt_cache_bytes_max, 512 * kMib);
}

TEST(Memory, FollowsTheTypeOfTheCacheAndTheLastWord) {
  const auto kv = [](std::vector<std::string> words) {
    return memory_of(plan(words), {}).kv_bytes;
  };
  const std::uint64_t f16 = 90u * 128 * 2 * 4096;
  EXPECT_EQ(kv({"-ctk", "q8_0", "-ctv", "q8_0"}), f16 * 17 / 32);
  EXPECT_EQ(kv({"-ctk", "q8_0", "--cache-type-k", "f32", "-ctv", "f16"}), f16 * 3 / 2);
  EXPECT_EQ(kv({"-ctk", "of-tomorrow"}), std::nullopt);
  EXPECT_EQ(memory_of(plan({"--cache-ram", "512", "-cram", "0"}), {}).prompt_cache_bytes_max, 0u);
  EXPECT_EQ(memory_of(plan({"--cache-ram", "-1"}), {}).prompt_cache_bytes_max, std::nullopt);
}

TEST(Memory, SaysNothingOfWhatTheEngineDecides) {
  StartPlan undecided = plan({});
  undecided.context_tokens_per_slot = 0;
  EXPECT_EQ(memory_of(undecided, {}).kv_bytes, std::nullopt);
  StartPlan unknown = plan({});
  unknown.manifest.shape = {};
  EXPECT_EQ(memory_of(unknown, {}).kv_bytes, std::nullopt);
  EXPECT_EQ(memory_of(plan({}), {}).prompt_cache_bytes_max, std::nullopt);
}

TEST(Memory, AProjectorOfTheUsersOwnReplacesTheModels) {
  LlamaServerOptions options;
  options.projector = OwnFile{"/p", "1", 7};
  EXPECT_EQ(memory_of(plan({}), options).weights_bytes, 1007u);
}

}  // namespace
}  // namespace werk::engine::llama_server
