#include "werk/engine/vllm/launch.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>

#include "werk/base/digest.hpp"
#include "werk/model/store.hpp"

namespace werk::engine::vllm {
namespace {

constexpr std::string_view kPrefixCaching = "--enable-prefix-caching";
constexpr std::string_view kTokenDetails = "--enable-prompt-tokens-details";

struct Version {
  unsigned major = 0;
  unsigned minor = 0;
};

// Older ones end with "unrecognized arguments".
constexpr Version kKnowsTokenDetails{0, 7};

std::optional<Version> read_version(std::string_view text) {
  Version version;
  const char* const end = text.data() + text.size();
  const auto major = std::from_chars(text.data(), end, version.major);
  if (major.ec != std::errc() || major.ptr == end || *major.ptr != '.') return std::nullopt;
  const auto minor = std::from_chars(major.ptr + 1, end, version.minor);
  if (minor.ec != std::errc()) return std::nullopt;
  return version;
}

bool is_older(const Version& version, const Version& than) {
  return version.major < than.major || (version.major == than.major && version.minor < than.minor);
}

}  // namespace

Result<StartPlan> plan_start(const model::Manifest& manifest, const std::filesystem::path& folder,
                             const VllmOptions& options) {
  if (Status sound = check_arguments(options.extra_arguments); !sound) return pass_on(sound);
  if (model::first_file(manifest, model::FileRole::weights) == nullptr) {
    return fail(ErrorCode::model_unusable,
                "This model has no weights: its manifest names no such file");
  }
  StartPlan plan;
  plan.key.engine = kEngineName;
  plan.key.manifest_identity = model::identity_of(manifest);
  std::string decisions = fmt::format("python={}\n", options.python.value_or(""));
  const bool asks = options.prefix_caching == PrefixCaching::asked &&
                    !speaks_of(options.extra_arguments, kPrefixCaching);
  if (asks) decisions += fmt::format("{}\n", kPrefixCaching);
  for (const std::string& word : options.extra_arguments) {
    decisions += word;
    decisions += '\0';
  }
  plan.key.options_digest = sha256_hex(decisions);
  plan.manifest = manifest;
  plan.model_folder = folder;
  // Linked files lie where they belong to somebody else.
  const model::InstalledModel installed{manifest, folder};
  plan.arguments = {"serve", installed.weights_path().parent_path().string(), "--served-model-name",
                    plan.key.alias()};
  if (!speaks_of(options.extra_arguments, kTokenDetails))
    plan.arguments.emplace_back(kTokenDetails);
  if (asks) plan.arguments.emplace_back(kPrefixCaching);
  plan.arguments.insert(plan.arguments.end(), options.extra_arguments.begin(),
                        options.extra_arguments.end());
  plan.slots = 0;
  plan.context_tokens_per_slot = 0;
  return plan;
}

std::vector<std::string> words_for(const StartPlan& plan, std::string_view version) {
  std::vector<std::string> words = plan.arguments;
  const std::optional<Version> known = read_version(version);
  if (known && is_older(*known, kKnowsTokenDetails)) std::erase(words, kTokenDetails);
  return words;
}

std::vector<std::string> child_environment(std::span<const std::string> own,
                                           std::string_view secret) {
  // Development routes run any code for whoever reaches the socket.
  constexpr std::array<std::string_view, 12> kForeign{
      "WERK_API_KEY",    "WERK_LLAMA_",           "WERK_VLLM_",
      "VLLM_API_KEY=",   "VLLM_SERVER_DEV_MODE=", "HF_TOKEN=",
      "HF_HUB_OFFLINE=", "HUGGING_FACE_",         "OPENAI_",
      "ANTHROPIC_",      "LLAMA_API_KEY=",        "PYTHONUNBUFFERED="};
  std::vector<std::string> environment;
  for (const std::string& entry : own) {
    const bool foreign = std::ranges::any_of(
        kForeign, [&entry](std::string_view head) { return entry.starts_with(head); });
    if (!foreign) environment.push_back(entry);
  }
  for (const auto* entry : {"HF_HUB_OFFLINE=1", "TRANSFORMERS_OFFLINE=1", "VLLM_NO_USAGE_STATS=1",
                            "DO_NOT_TRACK=1", "PYTHONUNBUFFERED=1"}) {
    environment.emplace_back(entry);
  }
  environment.push_back(fmt::format("VLLM_API_KEY={}", secret));
  return environment;
}

}  // namespace werk::engine::vllm
