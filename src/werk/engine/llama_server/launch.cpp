#include "werk/engine/llama_server/launch.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>

#include "werk/base/digest.hpp"
#include "werk/model/store.hpp"

namespace werk::engine::llama_server {
namespace {

constexpr std::uint64_t kDefaultContextTokensMax = 32'768;
constexpr std::uint64_t kTotalContextTokensMax =
    2'147'483'647;  // the engine counts in 32 bits with sign
constexpr std::uint64_t kContextStepTokens = 256;
constexpr std::uint64_t kCacheRamMibMax = 8'192;
constexpr std::uint64_t kMib = 1024 * 1024;
constexpr std::size_t kHttpThreadsBesidesSlots = 8;  // status routes answer while all slots stream
// A prefill stops only between logical batches, so on a processor they are kept short; accelerators
// are quick enough.
constexpr std::uint32_t kProcessorBatchTokens = 512;

// Collects the launch line, and beside it what the runtime key's digest covers.
class Line {
 public:
  void add(std::initializer_list<std::string_view> words) {
    for (const std::string_view word : words) words_.emplace_back(word);
  }
  void decides(std::string_view name, std::string_view value) {
    decisions_ += fmt::format("{}={}", name, value);
    decisions_ += '\0';
  }
  // A setting that is both.
  void set(std::string_view flag, std::string_view value) {
    add({flag, value});
    decides(flag, value);
  }
  std::vector<std::string>& words() { return words_; }
  std::string digest() const { return sha256_hex(decisions_); }

 private:
  std::vector<std::string> words_;
  std::string decisions_;
};

std::optional<std::uint64_t> number_in(std::string_view text) {
  std::uint64_t value = 0;
  const auto read = std::from_chars(text.data(), text.data() + text.size(), value);
  if (read.ec != std::errc() || read.ptr != text.data() + text.size()) return std::nullopt;
  return value;
}

// What each slot and all of them together are to have.
struct Sizing {
  std::size_t slots = 1;
  std::uint64_t context_tokens_per_slot = 0;  // 0: the engine decides
};

Result<Sizing> size_of(const model::Manifest& manifest, const LlamaServerOptions& options,
                       const ExtraSizing& extra) {
  Sizing sizing;
  sizing.slots = extra.slots > 0 ? extra.slots : options.parallel;
  if (extra.has_context) {
    sizing.context_tokens_per_slot = extra.context_tokens_total / sizing.slots;
    return sizing;
  }
  const std::uint64_t trained = manifest.training_context_tokens;
  if (!options.ctx_size) {
    sizing.context_tokens_per_slot = std::min(trained, kDefaultContextTokensMax);
    return sizing;
  }
  sizing.context_tokens_per_slot = *options.ctx_size;
  if (trained > 0 && sizing.context_tokens_per_slot > trained) {
    return fail(
        ErrorCode::model_unusable,
        fmt::format(
            "--ctx-size asks for a context of {} tokens, but this model was trained with {}; "
            "ask for at most that, or for 0 to let the engine decide",
            sizing.context_tokens_per_slot, trained));
  }
  if (sizing.context_tokens_per_slot > kTotalContextTokensMax / sizing.slots) {
    return fail(ErrorCode::invalid_request,
                fmt::format("--ctx-size {} times --parallel {} is more than llama-server can count",
                            sizing.context_tokens_per_slot, sizing.slots));
  }
  return sizing;
}

void add_sizes(Line& line, const Sizing& sizing, const ExtraSizing& extra) {
  const std::string slots = std::to_string(sizing.slots);
  const std::string total = std::to_string(sizing.context_tokens_per_slot * sizing.slots);
  if (!extra.has_slots) line.set("-np", slots);
  line.add({"-no-kvu"});
  if (!extra.has_context) line.set("-c", total);
}

void add_batches(Line& line, const LaunchSettings& settings) {
  const LlamaServerOptions& options = settings.options;
  std::optional<std::uint32_t> batch = options.batch_size;
  if (!batch && settings.mode == Mode::cpu) {
    batch = std::max(kProcessorBatchTokens, options.ubatch_size.value_or(0));
  }
  if (batch) line.set("-b", std::to_string(*batch));
  if (options.ubatch_size) line.set("-ub", std::to_string(*options.ubatch_size));
}

void add_threads(Line& line, const LaunchSettings& settings, std::size_t slots) {
  const LlamaServerOptions& options = settings.options;
  // No part of the runtime key: they change the pace, not the answer.
  if (options.threads) line.add({"-t", std::to_string(*options.threads)});
  if (options.threads_batch) line.add({"-tb", std::to_string(*options.threads_batch)});
  line.add({"--threads-http", std::to_string(slots + kHttpThreadsBesidesSlots)});
}

void add_devices(Line& line, const LaunchSettings& settings) {
  const LlamaServerOptions& options = settings.options;
  if (options.gpu_layers) line.set("-ngl", *options.gpu_layers);
  if (options.main_gpu) line.set("-mg", std::to_string(*options.main_gpu));
  if (options.kv_cache_type) {
    line.set("-ctk", *options.kv_cache_type);
    line.set("-ctv", *options.kv_cache_type);
  }
  if (options.flash_attn) line.set("-fa", *options.flash_attn);
  if (options.kv_offload) {
    const std::string_view flag = *options.kv_offload == Switch::on ? "-kvo" : "-nkvo";
    line.add({flag});
    line.decides("kv_offload", flag);
  }
  // Without accelerators there is nothing to fit, and fitting loads the model twice.
  if (settings.mode == Mode::cpu) line.set("-fit", "off");
}

void add_services(Line& line, std::uint64_t memory_bytes) {
  line.add(
      {"--metrics", "--slots", "--no-ui", "--offline", "--cors-origins", "localhost", "--jinja"});
  // The engine's own default is 8 GiB of prompt cache per process, whatever the machine has.
  const std::uint64_t share_mib = memory_bytes / 16 / kMib;
  line.set("--cache-ram", std::to_string(std::min(kCacheRamMibMax, share_mib)));
}

// The projector beside the model is part of the manifest's identity; files that the user put in the
// place of the model's own, and another executable, aren't.
void add_own_files(Line& line, const model::InstalledModel& installed,
                   const LlamaServerOptions& options) {
  if (options.projector) {
    line.add({"-mm", options.projector->path});
    line.decides("projector", options.projector->identity);
  } else if (const auto* projector =
                 model::first_file(installed.manifest, model::FileRole::projector)) {
    line.add({"-mm", installed.path_of(*projector).string()});
  }
  if (options.chat_template) {
    line.add({"--chat-template-file", options.chat_template->path});
    line.decides("chat_template", options.chat_template->identity);
  }
  if (options.executable) line.decides("executable", *options.executable);
}

// A word that an executable may lack, how many values follow it, and an older spelling of the same.
struct Dispensable {
  std::string_view word;
  std::size_t values = 0;
  std::string_view older = {};
};

constexpr std::array<Dispensable, 10> kDispensable{{{"-no-kvu", 0, "--no-kv-unified"},
                                                    {"--threads-http", 1},
                                                    {"-fit", 1},
                                                    {"--metrics", 0},
                                                    {"--slots", 0},
                                                    {"--no-ui", 0, "--no-webui"},
                                                    {"--offline", 0},
                                                    {"--cors-origins", 1},
                                                    {"--jinja", 0},
                                                    {"--cache-ram", 1}}};

const Dispensable* dispensable(std::string_view word) {
  const auto found = std::find_if(kDispensable.begin(), kDispensable.end(),
                                  [word](const Dispensable& one) { return one.word == word; });
  return found == kDispensable.end() ? nullptr : &*found;
}

// Which devices this mode may use, if the executable has others too.
std::optional<std::string> devices_for(Mode mode, const Executable& executable) {
  std::vector<std::string> wanted;
  for (const Device& device : executable.devices) {
    if (mode_of_device(device.name) == mode) wanted.push_back(device.name);
  }
  if (!executable.knows("--device") || wanted.size() == executable.devices.size())
    return std::nullopt;
  return wanted.empty() ? "none" : fmt::format("{}", fmt::join(wanted, ","));
}

// 0: the engine's own choice.
std::uint32_t default_threads(const LaunchSettings& settings, const Executable& executable) {
  if (settings.mode != Mode::cpu || settings.options.threads) return 0;
  const Threads& threads = settings.default_threads;
  return executable.openmp == OpenMp::llvm ? threads.yielding : threads.spinning;
}

// Whether LLVM's OpenMP is loaded before this executable's own.
bool needs_preload(const LaunchSettings& settings, const Executable& executable) {
  const LlamaServerOptions& options = settings.options;
  // One thread waits for none.
  const std::uint32_t most = std::max(options.threads.value_or(settings.default_threads.yielding),
                                      options.threads_batch.value_or(0));
  return settings.mode == Mode::cpu && !executable.preload.empty() && most != 1;
}

}  // namespace

std::vector<std::string_view> missing_flags(const Executable& executable) {
  std::vector<std::string_view> missing;
  for (const Dispensable& one : kDispensable) {
    const bool older = !one.older.empty() && executable.knows(one.older);
    if (!one.word.empty() && !executable.knows(one.word) && !older) missing.push_back(one.word);
  }
  return missing;
}

ExtraSizing sizing_in(std::span<const std::string> extra_arguments) {
  ExtraSizing sizing;
  for (std::size_t i = 0; i < extra_arguments.size(); ++i) {
    const std::string& word = extra_arguments[i];
    const std::string_view value = i + 1 < extra_arguments.size()
                                       ? std::string_view(extra_arguments[i + 1])
                                       : std::string_view();
    if (word == "-c" || word == "--ctx-size") {
      sizing.has_context = true;
      sizing.context_tokens_total = number_in(value).value_or(0);
    } else if (word == "-np" || word == "--parallel") {
      sizing.has_slots = true;
      sizing.slots = static_cast<std::size_t>(number_in(value).value_or(0));
    }
  }
  return sizing;
}

Result<StartPlan> plan_start(const model::Manifest& manifest, const std::filesystem::path& folder,
                             const LaunchSettings& settings) {
  if (auto checked = check_options(settings.options); !checked) return pass_on(checked);
  const model::ManifestFile* weights = model::first_file(manifest, model::FileRole::weights);
  if (weights == nullptr) {
    return fail(ErrorCode::model_unusable,
                "This model has no weights: its manifest names no such file");
  }
  const ExtraSizing extra = sizing_in(settings.options.extra_arguments);
  auto sizing = size_of(manifest, settings.options, extra);
  if (!sizing) return pass_on(sizing);

  const model::InstalledModel installed{manifest, folder};
  Line line;
  line.add({"-m", installed.path_of(*weights).string()});
  add_own_files(line, installed, settings.options);
  line.add({"--alias", ""});
  const std::size_t alias_place = line.words().size() - 1;
  add_sizes(line, *sizing, extra);
  add_batches(line, settings);
  add_threads(line, settings, sizing->slots);
  add_devices(line, settings);
  add_services(line, settings.memory_bytes);
  for (const std::string& word : settings.options.extra_arguments) {
    line.add({word});
    line.decides("extra", word);
  }

  StartPlan plan;
  plan.key.engine = engine_name(settings.mode);
  plan.key.manifest_identity = model::identity_of(manifest);
  plan.key.options_digest = line.digest();
  line.words()[alias_place] = plan.key.alias();
  plan.manifest = manifest;
  plan.model_folder = folder;
  plan.arguments = std::move(line.words());
  plan.slots = sizing->slots;
  plan.context_tokens_per_slot = sizing->context_tokens_per_slot;
  return plan;
}

Result<std::vector<std::string>> words_for(const StartPlan& plan, const LaunchSettings& settings,
                                           const Executable& executable) {
  const std::vector<std::string>& extra = settings.options.extra_arguments;
  const std::size_t own = plan.arguments.size() - std::min(extra.size(), plan.arguments.size());
  std::vector<std::string> words;
  for (std::size_t i = 0; i < own; ++i) {
    const std::string& word = plan.arguments[i];
    if (word == "-np" && !executable.knows("-np") && !executable.knows("--parallel")) {
      if (plan.slots > 1) {
        return fail(
            ErrorCode::start_failed,
            fmt::format(
                "{} slots were asked for (--parallel), but llama-server {} has no --parallel",
                plan.slots, executable.version.text()));
      }
      ++i;  // one slot is all it has
      continue;
    }
    const Dispensable* known = dispensable(word);
    if (known == nullptr || executable.knows(word)) {
      words.push_back(word);
    } else if (!known->older.empty() && executable.knows(known->older)) {
      words.emplace_back(known->older);
    } else {
      i += known->values;
    }
  }
  if (const std::uint32_t threads = default_threads(settings, executable); threads > 0) {
    words.emplace_back("-t");
    words.push_back(std::to_string(threads));
  }
  if (const auto devices = devices_for(settings.mode, executable)) {
    words.emplace_back("--device");
    words.push_back(*devices);
  }
  words.insert(words.end(), plan.arguments.begin() + static_cast<std::ptrdiff_t>(own),
               plan.arguments.end());
  return words;
}

std::vector<std::string> child_environment(std::span<const std::string> own,
                                           std::string_view secret, const LaunchSettings& settings,
                                           const Executable& executable) {
  // The engine reads a variable for almost every flag; a stray one silently changes slots, context
  // or cache.
  constexpr std::array<std::string_view, 6> kForeign{"LLAMA_", "WERK_API_KEY", "WERK_LLAMA_",
                                                     "HF_",    "MTMD_",        "HUGGING_FACE_"};
  std::vector<std::string> environment;
  for (const std::string& entry : own) {
    const bool foreign =
        std::any_of(kForeign.begin(), kForeign.end(),
                    [&entry](std::string_view head) { return entry.starts_with(head); });
    if (!foreign) environment.push_back(entry);
  }
  environment.emplace_back("HF_HUB_OFFLINE=1");
  if (!secret.empty()) environment.push_back(fmt::format("LLAMA_API_KEY={}", secret));
  if (!needs_preload(settings, executable)) return environment;
  return preloading(std::move(environment), executable.preload);
}

std::optional<std::uint64_t> largest_context(const model::Manifest& manifest, std::size_t slots,
                                             std::uint64_t available_bytes) {
  const std::uint64_t per_token = model::kv_bytes_per_token(manifest.shape);
  const std::uint64_t weights = model::total_bytes(manifest);
  if (per_token == 0 || slots == 0 || available_bytes <= weights) return std::nullopt;
  const std::uint64_t tokens = (available_bytes - weights) / per_token / slots;
  const std::uint64_t rounded = tokens / kContextStepTokens * kContextStepTokens;
  if (rounded == 0) return std::nullopt;
  return rounded;
}

}  // namespace werk::engine::llama_server
