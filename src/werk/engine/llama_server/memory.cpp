#include "werk/engine/llama_server/memory.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <string>
#include <string_view>

namespace werk::engine::llama_server {
namespace {

constexpr std::uint64_t kMib = 1024 * 1024;

// Bits of one number, with its share of the block's scale. Source: ggml's block sizes.
struct CacheType {
  std::string_view name;
  double bits = 0;
};

constexpr std::array<CacheType, 9> kCacheTypes{{{"f32", 32},
                                                {"f16", 16},
                                                {"bf16", 16},
                                                {"q8_0", 8.5},
                                                {"q5_1", 6},
                                                {"q5_0", 5.5},
                                                {"q4_1", 5},
                                                {"q4_0", 4.5},
                                                {"iq4_nl", 4.5}}};

// The value behind the last of these flags, as it counts for the engine.
std::optional<std::string> last_value(const std::vector<std::string>& words,
                                      std::initializer_list<std::string_view> flags) {
  std::optional<std::string> value;
  for (std::size_t i = 0; i + 1 < words.size(); ++i) {
    if (std::ranges::find(flags, words[i]) != flags.end()) value = words[i + 1];
  }
  return value;
}

std::optional<double> bits_of(std::string_view type) {
  const auto found = std::ranges::find(kCacheTypes, type, &CacheType::name);
  if (found == kCacheTypes.end()) return std::nullopt;
  return found->bits;
}

std::optional<std::uint64_t> kv_bytes_of(const MemoryEstimate& estimate,
                                         const model::ModelShape& shape) {
  const auto key_bits = bits_of(estimate.key_type);
  const auto value_bits = bits_of(estimate.value_type);
  if (model::kv_bytes_per_token(shape) == 0 || estimate.kv_tokens == 0 || !key_bits || !value_bits)
    return std::nullopt;
  const double bits_of_token = static_cast<double>(shape.kv_heads_total) *
                               (static_cast<double>(shape.key_length) * *key_bits +
                                static_cast<double>(shape.value_length) * *value_bits);
  constexpr double kBitsOfByte = 8;
  constexpr double kMost = 1e18;
  const double bytes = bits_of_token / kBitsOfByte * static_cast<double>(estimate.kv_tokens);
  if (bytes > kMost) return std::nullopt;
  return static_cast<std::uint64_t>(bytes);
}

}  // namespace

MemoryEstimate memory_of(const StartPlan& plan, const LlamaServerOptions& options) {
  MemoryEstimate estimate;
  for (const model::ManifestFile& file : plan.manifest.files) {
    const bool replaced = options.projector && file.role == model::FileRole::projector;
    const bool loaded =
        file.role == model::FileRole::weights || file.role == model::FileRole::projector;
    if (loaded && !replaced) estimate.weights_bytes += file.size_bytes;
  }
  if (options.projector) estimate.weights_bytes += options.projector->size_bytes;
  estimate.kv_tokens = plan.context_tokens_per_slot * plan.slots;
  estimate.key_type = last_value(plan.arguments, {"-ctk", "--cache-type-k"}).value_or("f16");
  estimate.value_type = last_value(plan.arguments, {"-ctv", "--cache-type-v"}).value_or("f16");
  estimate.kv_bytes = kv_bytes_of(estimate, plan.manifest.shape);
  const std::string mib = last_value(plan.arguments, {"--cache-ram", "-cram"}).value_or("");
  std::uint64_t count = 0;
  const auto [end, error] = std::from_chars(mib.data(), mib.data() + mib.size(), count);
  if (error == std::errc() && end == mib.data() + mib.size() && count < kMib * kMib)
    estimate.prompt_cache_bytes_max = count * kMib;
  return estimate;
}

}  // namespace werk::engine::llama_server
