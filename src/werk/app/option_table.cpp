#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <fstream>

#include "werk/app/option_access.hpp"
#include "werk/app/settings.hpp"
#include "werk/base/text.hpp"
#include "werk/engine/vllm/options.hpp"

namespace werk::app {

namespace llama = engine::llama_server;

namespace {

using Llama = llama::LlamaServerOptions;

constexpr auto kTokensMax = std::uint64_t{1} << 31;
constexpr auto kSmallMax = std::uint32_t{1} << 20;

// Members of the llama-server options, which a model may have of its own.
using SetLlama = Status (*)(Llama& options, const std::string& value);
using ShowLlama = std::string (*)(const Llama& options);

template <SetLlama Set, ShowLlama Show>
constexpr Access of_llama = {
    [](Settings& settings, const std::string& value) { return Set(settings.llama, value); },
    [](const Settings& settings) { return Show(settings.llama); },
    [](ModelSettings& model, const std::string& value) { return Set(model.llama, value); },
    [](const ModelSettings& model) { return Show(model.llama); }};

template <auto Member>
std::string show_llama(const Llama& options) {
  return text_of(options.*Member);
}

template <auto Member, std::uint64_t Least, std::uint64_t Most>
constexpr Access llama_number = of_llama<[](Llama& options, const std::string& value) {
  return read_number_into(value, Least, Most, options.*Member);
},
                                         show_llama<Member>>;

// The engine's options check their words themselves and put the flag's name first, which isn't
// where this value need have come from.
Status check_words(const Llama& options) {
  Status sound = llama::check_options(options);
  if (sound) return sound;
  std::string& message = sound.error().message;
  message.erase(0, message.find(' ') + 1);
  return sound;
}

template <auto Member>
constexpr Access llama_text = of_llama<[](Llama& options, const std::string& value) -> Status {
  if (value.empty()) return fail(ErrorCode::invalid_request, "takes a value");
  options.*Member = value;
  return check_words(options);
},
                                       show_llama<Member>>;

Status set_kv_offload(Llama& options, const std::string& value) {
  static const std::vector<std::string> kModes = {"on", "off"};
  Status known = read_choice(value, kModes);
  if (known) options.kv_offload = value == "on" ? llama::Switch::on : llama::Switch::off;
  return known;
}

std::string show_kv_offload(const Llama& options) {
  if (!options.kv_offload) return {};
  return *options.kv_offload == llama::Switch::on ? "on" : "off";
}

Status set_arguments(Llama& options, const std::string& value) {
  auto words = shell_words(value);
  if (!words) return pass_on(words);
  options.extra_arguments = std::move(*words);
  return check_words(options);
}

std::string show_arguments(const Llama& options) { return shell_line(options.extra_arguments); }

Status read_backend(const std::string& value, std::string& into) {
  static const std::vector<std::string> kBackends = {"auto",       "llama-cpu",    "llama-cuda",
                                                     "llama-rocm", "llama-vulkan", "llama-metal",
                                                     "vllm",       "onnx-genai",   "transformers"};
  Status known = read_choice(value, kBackends);
  if (known) into = value;
  return known;
}

constexpr Access kBackend = {[](Settings& settings, const std::string& value) {
                               return read_backend(value, settings.backend);
                             },
                             show<&Settings::backend>,
                             [](ModelSettings& model, const std::string& value) {
                               return read_backend(value, model.backend);
                             },
                             [](const ModelSettings& model) { return model.backend; }};

constexpr Access kIdleTimeout = {
    time<&Settings::idle_timeout>.set, show<&Settings::idle_timeout>,
    [](ModelSettings& model, const std::string& value) -> Status {
      auto duration = parse_duration(value);
      if (!duration) return pass_on(duration);
      model.idle_timeout = *duration;
      return {};
    },
    [](const ModelSettings& model) { return text_of(model.idle_timeout); }};

// Out of range the nearest that is in it counts, with a warning.
template <auto Member, std::int64_t Least>
constexpr Access cache_size = {
    [](Settings& settings, const std::string& value) -> Status {
      constexpr std::int64_t kMost = 8;
      std::int64_t given = 0;
      const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), given);
      if (value.empty() || end != value.data() + value.size() ||
          error == std::errc::invalid_argument) {
        return fail(ErrorCode::invalid_request,
                    fmt::format("takes a whole number from {} to {}, not \"{}\"", Least, kMost,
                                printable(value)));
      }
      if (error == std::errc::result_out_of_range) given = value.starts_with('-') ? Least : kMost;
      const std::int64_t taken = std::clamp(given, Least, kMost);
      settings.*Member = static_cast<std::size_t>(taken);
      if (fmt::to_string(taken) != value) {
        settings.warnings.push_back(
            fmt::format("takes {} to {}; {} counts as {}", Least, kMost, value, taken));
      }
      return {};
    },
    show<Member>};

Status set_log_level(Settings& settings, const std::string& value) {
  static const std::vector<std::string> kLevels = {"trace", "debug", "info",
                                                   "warn",  "error", "off"};
  Status known = read_choice(value, kLevels);
  if (!known) return known;
  const auto at = std::ranges::find(kLevels, value) - kLevels.begin();
  settings.log_level = static_cast<log::Level>(at);
  return {};
}

std::string show_log_level(const Settings& settings) {
  constexpr std::array kLevels = {"trace", "debug", "info", "warn", "error", "off"};
  return kLevels.at(static_cast<std::size_t>(settings.log_level));
}

template <std::size_t Index>
constexpr Access executable = {
    [](Settings& settings, const std::string& value) -> Status {
      settings.executables.by_mode[Index] = value;
      return {};
    },
    [](const Settings& settings) { return text_of(settings.executables.by_mode[Index]); }};

constexpr Access kAnyExecutable = {
    [](Settings& settings, const std::string& value) -> Status {
      settings.executables.any_mode = value;
      return {};
    },
    [](const Settings& settings) { return text_of(settings.executables.any_mode); }};

Status set_key(Settings& settings, const std::string& value) {
  const std::string_view key = trim(value);
  if (key.empty())
    return fail(ErrorCode::invalid_request, "is set but empty; unset it to serve without a key");
  settings.keys.emplace_back(key);
  return {};
}

Status set_key_file(Settings& settings, const std::string& path) {
  struct stat facts {};
  if (::stat(path.c_str(), &facts) != 0) {
    return fail(ErrorCode::not_found,
                fmt::format("names {}, which can't be read: {}", path, std::strerror(errno)));
  }
  if ((facts.st_mode & 077u) != 0) {
    return fail(
        ErrorCode::invalid_request,
        fmt::format("names {}, which others may read; `chmod 600 {}` mends it", path, path));
  }
  std::ifstream file(path);
  std::string line;
  std::size_t found = 0;
  while (std::getline(file, line)) {
    const std::string_view key = trim(line);
    if (key.empty() || key.starts_with('#')) continue;
    settings.keys.emplace_back(key);
    ++found;
  }
  if (found == 0)
    return fail(ErrorCode::invalid_request, fmt::format("names {}, which holds no key", path));
  settings.key_file = path;
  return {};
}

// Of the key itself never more than that there is one.
std::string show_key(const Settings& settings) {
  return settings.keys.empty() || settings.sources.count("api_key") == 0 ? "" : "(set)";
}

template <auto Member>
constexpr Access permission = {
    [](Settings& settings, const std::string&) -> Status {
      settings.*Member = Permission::yes;
      return {};
    },
    [](const Settings& settings) {
      return std::string(settings.*Member == Permission::yes ? "true" : "false");
    }};

constexpr Access kVllmPort = {[](Settings& settings, const std::string& value) {
                                std::uint16_t port = 0;
                                Status read = read_number<std::uint16_t>(value, 1, 65535, port);
                                if (read) settings.vllm_port = port;
                                return read;
                              },
                              [](const Settings& settings) { return text_of(settings.vllm_port); }};

constexpr Access kVllmArguments = {
    [](Settings& settings, const std::string& value) -> Status {
      auto words = shell_words(value);
      if (!words) return pass_on(words);
      settings.vllm_arguments = std::move(*words);
      return engine::vllm::check_arguments(settings.vllm_arguments);
    },
    [](const Settings& settings) { return shell_line(settings.vllm_arguments); }};

constexpr Access kAllowedHosts = {[](Settings& settings, const std::string& value) -> Status {
                                    settings.allowed_hosts.push_back(value);
                                    return {};
                                  },
                                  [](const Settings& settings) {
                                    return fmt::format("{}",
                                                       fmt::join(settings.allowed_hosts, "\n"));
                                  }};

Status add_alias(Settings& settings, const std::string& value) {
  const std::size_t equals = value.find('=');
  const bool sound = equals != std::string::npos && equals > 0 && equals + 1 < value.size() &&
                     std::ranges::count(value.substr(0, equals), '*') <= 1;
  if (!sound) {
    return fail(ErrorCode::invalid_request,
                fmt::format("takes NAME=MODEL, where NAME may hold one star, not \"{}\"", value));
  }
  settings.aliases.push_back({value.substr(0, equals), value.substr(equals + 1)});
  return {};
}

std::string show_aliases(const Settings& settings) {
  std::string text;
  for (const routing::AliasRule& rule : settings.aliases)
    text += fmt::format("{}{}={}", text.empty() ? "" : "\n", rule.pattern, rule.model);
  return text;
}

Status set_prompt_edits(Settings& settings, const std::string& value) {
  static const std::vector<std::string> kModes = {"on", "off"};
  Status known = read_choice(value, kModes);
  if (known) {
    settings.prompt_edits =
        value == "on" ? gateway::PromptEdits::apply : gateway::PromptEdits::none;
  }
  return known;
}

std::string show_prompt_edits(const Settings& settings) {
  return settings.prompt_edits == gateway::PromptEdits::apply ? "on" : "off";
}

constexpr Access kKey = {set_key, show_key};
constexpr Access kKeyFile = {set_key_file, show<&Settings::key_file>};
constexpr Access kAliases = {add_alias, show_aliases};
constexpr Access kRemotes = {
    [](Settings& settings, const std::string& value) {
      return add_remote(settings.remotes, value);
    },
    [](const Settings& settings) { return show_remotes(settings.remotes); }};
constexpr Access kPromptEdits = {set_prompt_edits, show_prompt_edits};
constexpr Access kLogLevel = {set_log_level, show_log_level};

constexpr Shape kValue = Shape::value;
constexpr Shape kVariable = Shape::variable_only;
constexpr std::uint64_t kBodyBytesLeast = 1024;
constexpr std::uint64_t kBodyBytesMost = std::uint64_t{512} << 20;

const Option kOptions[] = {
    {"--config", "WERK_CONFIG", "FILE", "the settings file (werk.toml in the home)", kValue,
     text<&Settings::config>, kNotInFile},
    {"--model-home", "WERK_HOME", "DIR", "models, engines and the node's own files", kValue,
     text<&Settings::home>},
    {"--host", "", "ADDRESS", "address to serve (127.0.0.1)", kValue, text<&Settings::host>},
    {"--port", "", "N", "port to serve (11434); 0: any free one", kValue,
     number<&Settings::port, 0, 65535>},
    {"--model", "", "ID", "the default model, prepared at start; others are served too", kValue,
     text<&Settings::model>},
    {"--backend", "", "NAME",
     "auto, llama-cpu, -cuda, -rocm, -vulkan, -metal, vllm, onnx-genai, transformers (auto)",
     kValue, kBackend},
    {"--parallel", "WERK_LLAMA_PARALLEL", "N", "slots: calls at once on one model (1)", kValue,
     llama_number<&Llama::parallel, 1, 256>},
    {"--ctx-size", "WERK_LLAMA_CTX", "N",
     "tokens per slot (the model's own, at most 32768); 0: the engine decides", kValue,
     llama_number<&Llama::ctx_size, 0, kTokensMax>},
    {"--batch-size", "WERK_LLAMA_BATCH_SIZE", "N",
     "tokens per logical batch; a prompt can be stopped between two", kValue,
     llama_number<&Llama::batch_size, 1, kSmallMax>},
    {"--ubatch-size", "WERK_LLAMA_UBATCH_SIZE", "N", "tokens per physical batch", kValue,
     llama_number<&Llama::ubatch_size, 1, kSmallMax>},
    {"--threads", "WERK_LLAMA_THREADS", "N", "threads for generation", kValue,
     llama_number<&Llama::threads, 1, kSmallMax>},
    {"--threads-batch", "WERK_LLAMA_THREADS_BATCH", "N", "threads for prompts", kValue,
     llama_number<&Llama::threads_batch, 1, kSmallMax>},
    {"--gpu-layers", "WERK_LLAMA_GPU_LAYERS", "LAYERS",
     "layers on the accelerator: a number, auto or all", kValue, llama_text<&Llama::gpu_layers>},
    {"--main-gpu", "WERK_LLAMA_MAIN_GPU", "N", "the accelerator's number", kValue,
     llama_number<&Llama::main_gpu, 0, 1024>},
    {"--kv-cache-type", "WERK_LLAMA_KV_CACHE_TYPE", "TYPE",
     "type of keys and values: f16, q8_0, ...", kValue, llama_text<&Llama::kv_cache_type>},
    {"--flash-attn", "WERK_LLAMA_FLASH_ATTN", "MODE", "on, off or auto", kValue,
     llama_text<&Llama::flash_attn>},
    {"--kv-offload", "WERK_LLAMA_KV_OFFLOAD", "MODE",
     "on or off: keys and values on the accelerator", kValue,
     of_llama<set_kv_offload, show_kv_offload>},
    {"", "WERK_LLAMA_ARGS", "WORDS",
     "further words for llama-server, split as a shell does; they come last and win", kVariable,
     of_llama<set_arguments, show_arguments>, "llama_args"},
    {"", "WERK_LLAMA_SERVER", "PROGRAM", "the llama-server to use", kVariable, kAnyExecutable,
     "llama_server"},
    {"", "WERK_LLAMA_SERVER_CPU", "PROGRAM", "the one for llama-cpu", kVariable, executable<0>,
     "llama_server_cpu"},
    {"", "WERK_LLAMA_SERVER_CUDA", "PROGRAM", "the one for llama-cuda", kVariable, executable<1>,
     "llama_server_cuda"},
    {"", "WERK_LLAMA_SERVER_ROCM", "PROGRAM", "the one for llama-rocm", kVariable, executable<2>,
     "llama_server_rocm"},
    {"", "WERK_LLAMA_SERVER_VULKAN", "PROGRAM", "the one for llama-vulkan", kVariable,
     executable<3>, "llama_server_vulkan"},
    {"", "WERK_LLAMA_SERVER_METAL", "PROGRAM", "the one for llama-metal", kVariable, executable<4>,
     "llama_server_metal"},
    {"", "WERK_API_KEY", "KEY", "the key that clients must send", kVariable, kKey, kNotInFile},
    {"", "WERK_API_KEYS", "FILE", "a file of keys, mode 0600: one a line, # comments", kVariable,
     kKeyFile, "api_keys_file"},
    {"--allow-unauthenticated", "", "", "serve an address that others can reach without a key",
     Shape::flag, permission<&Settings::unauthenticated>},
    {"--allow-host", "", "NAME",
     "a further Host name that is served without a key; may be given several times",
     Shape::repeated, kAllowedHosts},
    {"--alias", "", "NAME=MODEL",
     "a name that reaches an installed model, as 'claude-*=smollm2'; may be given several times",
     Shape::repeated, kAliases, "aliases"},
    {"--remote", "", "NAME=URL",
     "a server whose models are served too, as lab=http://10.0.0.5:8000/v1; may be given several "
     "times",
     Shape::repeated, kRemotes, "remotes"},
    {"--prompt-edits", "WERK_PROMPT_EDITS", "MODE",
     "on or off: take out of a Messages prompt what only breaks the sharing of prefixes (on)",
     kValue, kPromptEdits},
    {"", "WERK_API_BODY_LIMIT_BYTES", "N", "largest request body (134217728)", kVariable,
     number<&Settings::body_bytes_max, kBodyBytesLeast, kBodyBytesMost>, "body_limit_bytes"},
    {"--max-resident", "", "N", "llama-servers at a time (0: no limit)", kValue,
     number<&Settings::max_resident, 0, 10'000>},
    {"--active-models", "", "N",
     "models active at once on the processor: each gets its part of the cores (all; 2 where "
     "threads "
     "spin)",
     kValue, number<&Settings::active_models, 1, 256>},
    {"--capacity-wait", "", "DURATION",
     "how long a call waits for a place among them (60s); 0: refused at once", kValue,
     time<&Settings::capacity_wait>},
    {"--early-headers", "WERK_EARLY_HEADERS", "DURATION",
     "a streamed call that waits longer gets its headers and signs of life (0: never)", kValue,
     time<&Settings::early_headers>},
    {"--start-timeout", "", "DURATION", "a start without progress for so long has failed (300s)",
     kValue, time<&Settings::start_timeout>},
    {"--silence-timeout", "", "DURATION",
     "an engine silent to a call for so long has failed; one silent to all is replaced (600s)",
     kValue, time<&Settings::silence_timeout>},
    {"--drain-timeout", "", "DURATION", "how long running calls may take to end at shutdown (30s)",
     kValue, time<&Settings::drain_timeout>},
    {"--idle-timeout", "", "DURATION", "a model without calls for so long is unloaded (0: never)",
     kValue, kIdleTimeout},
    {"--log-level", "", "LEVEL", "trace, debug, info, warn, error or off (info)", kValue,
     kLogLevel},
    {"", "WERK_VLLM_PYTHON", "PROGRAM", "the python whose environment holds vLLM", kVariable,
     text<&Settings::vllm_python>, "vllm_python"},
    {"", "WERK_VLLM_ARGS", "WORDS",
     "further words for vLLM, split as a shell does; they come last and win", kVariable,
     kVllmArguments, "vllm_args"},
    {"", "WERK_VLLM_HEALTH_TIMEOUT_SECONDS", "N", "how long a vLLM may take to be ready (300)",
     kVariable, number<&Settings::vllm_health_timeout_seconds, 1, 86'400>,
     "vllm_health_timeout_seconds"},
    {"", "WERK_VLLM_LOG", "FILE", "a file that takes vLLM's output besides `werk logs`", kVariable,
     text<&Settings::vllm_log>, "vllm_log"},
    {"", "WERK_VLLM_HOST", "HOST", "a vLLM of somebody else's, in the place of one of our own",
     kVariable, text<&Settings::vllm_host>, "vllm_host"},
    {"", "WERK_VLLM_PORT", "N", "its port", kVariable, kVllmPort, "vllm_port"},
    {"", "WERK_VLLM_MODEL", "NAME", "which of its models is meant, where it has several", kVariable,
     text<&Settings::vllm_model>, "vllm_model"},
    {"--persistence", "", "", "ask engines that can for prefix caching (vLLM)", Shape::flag,
     permission<&Settings::persistence>},
    {"", "WERK_ONNX_GENAI_PYTHON", "PROGRAM", "the python of the ONNX GenAI worker", kVariable,
     text<&Settings::onnx_genai_python>, "onnx_genai_python"},
    {"", "WERK_ONNX_RUNTIME_PYTHON", "PROGRAM", "the same; the one before wins", kVariable,
     text<&Settings::onnx_runtime_python>, "onnx_runtime_python"},
    {"", "WERK_ONNX_GENAI_MODEL_CACHE_SIZE", "N",
     "models that ONNX GenAI keeps, 0 to 8 (1); 0: none after its call", kVariable,
     cache_size<&Settings::onnx_genai_models, 0>, "onnx_genai_model_cache_size"},
    {"", "WERK_TRANSFORMERS_PYTHON", "PROGRAM", "the python of the Transformers worker", kVariable,
     text<&Settings::transformers_python>, "transformers_python"},
    {"", "WERK_TRANSFORMERS_MODEL_CACHE_SIZE", "N", "models that Transformers keeps, 0 to 8 (1)",
     kVariable, cache_size<&Settings::transformers_models, 0>, "transformers_model_cache_size"},
    {"--device", "WERK_TRANSFORMERS_DEVICE", "DEVICE",
     "where Transformers computes: cpu, cuda, cuda:1, mps (its own choice)", kValue,
     text<&Settings::device>},
    {"--dtype", "WERK_TRANSFORMERS_DTYPE", "DTYPE",
     "what Transformers computes with: float32, bfloat16, ... (its own choice)", kValue,
     text<&Settings::dtype>},
    {"--worker-cancel-limit", "", "DURATION",
     "a worker that doesn't confirm a cancel for so long is ended (5s)", kValue,
     time<&Settings::worker_cancel_limit>},
    {"", "WERK_BURN_MODEL_CACHE_SIZE", "N",
     "models that Burn keeps, 1 to 8 (1); that engine is still to come", kVariable,
     cache_size<&Settings::burn_models, 1>, "burn_model_cache_size"},
};

}  // namespace

std::span<const Option> options() { return kOptions; }

std::string key_of(const Option& option) {
  if (!option.key.empty() && option.key != kNotInFile) return std::string(option.key);
  const std::string_view name = option.flag.empty()
                                    ? option.variable.substr(std::string_view("WERK_").size())
                                    : option.flag.substr(2);
  std::string key = to_lower(name);
  std::ranges::replace(key, '-', '_');
  return key;
}

std::vector<const Option*> options_of_models() {
  std::vector<const Option*> all;
  for (const Option& option : options()) {
    if (option.access.set_of_model != nullptr) all.push_back(&option);
  }
  for (const Option& option : model_options()) all.push_back(&option);
  return all;
}

std::string model_key_of(const Option& option) {
  return option.key == "llama_args" ? "args" : key_of(option);
}

}  // namespace werk::app
