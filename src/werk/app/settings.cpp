#include "werk/app/settings.hpp"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <fstream>
#include <limits>

#include "werk/base/text.hpp"

namespace werk::app {

namespace llama = engine::llama_server;

namespace {

template <class Number>
Status read_number(const std::string& text, Number least, Number most, Number& into) {
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  const bool whole = error == std::errc() && end == text.data() + text.size() && !text.empty();
  if (!whole || value < least || value > most) {
    return fail(ErrorCode::invalid_request,
                fmt::format("takes a whole number from {} to {}, not \"{}\"", least, most, text));
  }
  into = static_cast<Number>(value);
  return {};
}

template <class Number>
Status read_optional_number(const std::string& text, Number least, Number most,
                            std::optional<Number>& into) {
  Number value = 0;
  Status read = read_number(text, least, most, value);
  if (read) into = value;
  return read;
}

Status read_choice(const std::string& text, std::span<const std::string> choices) {
  if (std::ranges::find(choices, text) != choices.end()) return {};
  std::string message = fmt::format("takes {}, not \"{}\"", fmt::join(choices, ", "), text);
  const auto near = near_names(text, choices, 1);
  if (!near.empty()) message += fmt::format("; did you mean {}?", near.front());
  return fail(ErrorCode::invalid_request, std::move(message));
}

Status set_backend(Settings& settings, const std::string& value) {
  static const std::vector<std::string> kBackends = {"auto",       "llama-cpu",    "llama-cuda",
                                                     "llama-rocm", "llama-vulkan", "llama-metal"};
  Status known = read_choice(value, kBackends);
  if (known) settings.backend = value;
  return known;
}

Status set_log_level(Settings& settings, const std::string& value) {
  static const std::vector<std::string> kLevels = {"trace", "debug", "info",
                                                   "warn",  "error", "off"};
  Status known = read_choice(value, kLevels);
  if (!known) return known;
  const auto at = std::ranges::find(kLevels, value) - kLevels.begin();
  settings.log_level = static_cast<log::Level>(at);
  return {};
}

Status set_kv_offload(Settings& settings, const std::string& value) {
  static const std::vector<std::string> kModes = {"on", "off"};
  Status known = read_choice(value, kModes);
  if (known) settings.llama.kv_offload = value == "on" ? llama::Switch::on : llama::Switch::off;
  return known;
}

Status set_llama_arguments(Settings& settings, const std::string& value) {
  auto words = shell_words(value);
  if (!words) return pass_on(words);
  settings.llama.extra_arguments = std::move(*words);
  return {};
}

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
  return {};
}

constexpr auto kTokensMax = std::uint64_t{1} << 31;
constexpr auto kSmallMax = std::uint32_t{1} << 20;

template <auto Member>
Status set_llama_number(Settings& settings, const std::string& value) {
  return read_optional_number(value, std::uint32_t{1}, kSmallMax, settings.llama.*Member);
}

template <auto Member>
Status set_llama_text(Settings& settings, const std::string& value) {
  if (value.empty()) return fail(ErrorCode::invalid_request, "takes a value");
  settings.llama.*Member = value;
  return {};
}

template <std::size_t Index>
Status set_executable(Settings& settings, const std::string& value) {
  settings.executables.by_mode[Index] = value;
  return {};
}

using Llama = llama::LlamaServerOptions;

template <auto Member>
Status set_text(Settings& settings, const std::string& value) {
  settings.*Member = value;
  return {};
}

template <auto Member>
Status set_time(Settings& settings, const std::string& value) {
  auto duration = parse_duration(value);
  if (!duration) return pass_on(duration);
  settings.*Member = *duration;
  return {};
}

Status set_port(Settings& settings, const std::string& value) {
  return read_number<std::uint16_t>(value, 0, 65535, settings.port);
}

Status set_parallel(Settings& settings, const std::string& value) {
  constexpr std::uint32_t kMost = 256;
  return read_number<std::uint32_t>(value, 1, kMost, settings.llama.parallel);
}

Status set_ctx_size(Settings& settings, const std::string& value) {
  return read_optional_number<std::uint64_t>(value, 0, kTokensMax, settings.llama.ctx_size);
}

Status set_main_gpu(Settings& settings, const std::string& value) {
  constexpr std::uint32_t kMost = 1024;
  return read_optional_number<std::uint32_t>(value, 0, kMost, settings.llama.main_gpu);
}

Status set_any_executable(Settings& settings, const std::string& value) {
  settings.executables.any_mode = value;
  return {};
}

Status allow_unauthenticated(Settings& settings, const std::string&) {
  settings.unauthenticated = Permission::yes;
  return {};
}

Status allow_host(Settings& settings, const std::string& value) {
  settings.allowed_hosts.push_back(value);
  return {};
}

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

Status set_prompt_edits(Settings& settings, const std::string& value) {
  static const std::vector<std::string> kModes = {"on", "off"};
  Status known = read_choice(value, kModes);
  if (known) {
    settings.prompt_edits =
        value == "on" ? gateway::PromptEdits::apply : gateway::PromptEdits::none;
  }
  return known;
}

Status set_body_limit(Settings& settings, const std::string& value) {
  constexpr std::uint64_t kLeast = 1024;
  constexpr std::uint64_t kMost = std::uint64_t{512} << 20;
  return read_number<std::uint64_t>(value, kLeast, kMost, settings.body_bytes_max);
}

Status set_max_resident(Settings& settings, const std::string& value) {
  constexpr std::size_t kMost = 10'000;
  return read_number<std::size_t>(value, 0, kMost, settings.max_resident);
}

constexpr Shape kValue = Shape::value;
constexpr Shape kVariable = Shape::variable_only;

const Option kOptions[] = {
    {"--model-home", "WERK_HOME", "DIR", "models, engines and the node's own files", kValue,
     set_text<&Settings::home>},
    {"--host", "", "ADDRESS", "address to serve (127.0.0.1)", kValue, set_text<&Settings::host>},
    {"--port", "", "N", "port to serve (11434); 0: any free one", kValue, set_port},
    {"--model", "", "ID", "the default model, prepared at start; others are served too", kValue,
     set_text<&Settings::model>},
    {"--backend", "", "NAME", "auto, llama-cpu, -cuda, -rocm, -vulkan or -metal (auto)", kValue,
     set_backend},
    {"--parallel", "WERK_LLAMA_PARALLEL", "N", "slots: calls at once on one model (1)", kValue,
     set_parallel},
    {"--ctx-size", "WERK_LLAMA_CTX", "N",
     "tokens per slot (the model's own, at most 32768); 0: the engine decides", kValue,
     set_ctx_size},
    {"--batch-size", "WERK_LLAMA_BATCH_SIZE", "N",
     "tokens per logical batch; a prompt can be stopped between two", kValue,
     set_llama_number<&Llama::batch_size>},
    {"--ubatch-size", "WERK_LLAMA_UBATCH_SIZE", "N", "tokens per physical batch", kValue,
     set_llama_number<&Llama::ubatch_size>},
    {"--threads", "WERK_LLAMA_THREADS", "N", "threads for generation", kValue,
     set_llama_number<&Llama::threads>},
    {"--threads-batch", "WERK_LLAMA_THREADS_BATCH", "N", "threads for prompts", kValue,
     set_llama_number<&Llama::threads_batch>},
    {"--gpu-layers", "WERK_LLAMA_GPU_LAYERS", "N", "layers on the accelerator, auto or all", kValue,
     set_llama_text<&Llama::gpu_layers>},
    {"--main-gpu", "WERK_LLAMA_MAIN_GPU", "N", "the accelerator's number", kValue, set_main_gpu},
    {"--kv-cache-type", "WERK_LLAMA_KV_CACHE_TYPE", "TYPE",
     "type of keys and values: f16, q8_0, ...", kValue, set_llama_text<&Llama::kv_cache_type>},
    {"--flash-attn", "WERK_LLAMA_FLASH_ATTN", "MODE", "on, off or auto", kValue,
     set_llama_text<&Llama::flash_attn>},
    {"--kv-offload", "WERK_LLAMA_KV_OFFLOAD", "MODE",
     "on or off: keys and values on the accelerator", kValue, set_kv_offload},
    {"", "WERK_LLAMA_ARGS", "WORDS",
     "further words for llama-server, split as a shell does; they come last and win", kVariable,
     set_llama_arguments},
    {"", "WERK_LLAMA_SERVER", "FILE", "the llama-server to use", kVariable, set_any_executable},
    {"", "WERK_LLAMA_SERVER_CPU", "FILE", "the one for llama-cpu", kVariable, set_executable<0>},
    {"", "WERK_LLAMA_SERVER_CUDA", "FILE", "the one for llama-cuda", kVariable, set_executable<1>},
    {"", "WERK_LLAMA_SERVER_ROCM", "FILE", "the one for llama-rocm", kVariable, set_executable<2>},
    {"", "WERK_LLAMA_SERVER_VULKAN", "FILE", "the one for llama-vulkan", kVariable,
     set_executable<3>},
    {"", "WERK_LLAMA_SERVER_METAL", "FILE", "the one for llama-metal", kVariable,
     set_executable<4>},
    {"", "WERK_API_KEY", "KEY", "the key that clients must send", kVariable, set_key},
    {"", "WERK_API_KEYS", "FILE", "a file of keys, mode 0600: one a line, # comments", kVariable,
     set_key_file},
    {"--allow-unauthenticated", "", "", "serve an address that others can reach without a key",
     Shape::flag, allow_unauthenticated},
    {"--allow-host", "", "NAME",
     "a further Host name that is served without a key; may be given several times",
     Shape::repeated, allow_host},
    {"--alias", "", "NAME=MODEL",
     "a name that reaches an installed model, as 'claude-*=smollm2'; may be given several times",
     Shape::repeated, add_alias},
    {"--prompt-edits", "WERK_PROMPT_EDITS", "MODE",
     "on or off: take out of a Messages prompt what only breaks the sharing of prefixes (on)",
     kValue, set_prompt_edits},
    {"", "WERK_API_BODY_LIMIT_BYTES", "N", "largest request body (134217728)", kVariable,
     set_body_limit},
    {"--max-resident", "", "N", "llama-servers at a time (0: no limit)", kValue, set_max_resident},
    {"--capacity-wait", "", "DURATION",
     "how long a call waits for a place among them (60s); 0: refused at once", kValue,
     set_time<&Settings::capacity_wait>},
    {"--early-headers", "WERK_EARLY_HEADERS", "DURATION",
     "a streamed call that waits longer gets its headers and signs of life (0: never)", kValue,
     set_time<&Settings::early_headers>},
    {"--start-timeout", "", "DURATION", "a start without progress for so long has failed (300s)",
     kValue, set_time<&Settings::start_timeout>},
    {"--drain-timeout", "", "DURATION", "how long running calls may take to end at shutdown (30s)",
     kValue, set_time<&Settings::drain_timeout>},
    {"--log-level", "", "LEVEL", "trace, debug, info, warn, error or off (info)", kValue,
     set_log_level},
};

Status apply(const Option& option, std::string_view name, Settings& settings,
             const std::string& value) {
  Status set = option.set(settings, value);
  if (!set) set.error().message = fmt::format("{} {}", name, set.error().message);
  return set;
}

}  // namespace

std::span<const Option> options() { return kOptions; }

Result<Settings> read_settings(std::span<const GivenFlag> flags, const Environment& environment) {
  Settings settings;
  for (const Option& option : kOptions) {
    const bool flagged = std::ranges::any_of(
        flags, [&](const GivenFlag& given) { return given.flag == option.flag; });
    if (option.variable.empty() || (flagged && !option.flag.empty())) continue;
    const auto value = environment(option.variable);
    // An empty variable is an unset one, except where emptiness would silently open the node.
    if (!value || (value->empty() && option.variable != "WERK_API_KEY")) continue;
    Status set = apply(option, option.variable, settings, *value);
    if (!set) return pass_on(set);
  }
  for (const GivenFlag& given : flags) {
    const auto option =
        std::ranges::find_if(kOptions, [&](const Option& one) { return one.flag == given.flag; });
    if (option == std::end(kOptions))
      return fail(ErrorCode::invalid_request, "unknown option " + given.flag);
    Status set = apply(*option, option->flag, settings, given.value);
    if (!set) return pass_on(set);
  }
  Status sound = llama::check_options(settings.llama);
  if (!sound) return pass_on(sound);
  return settings;
}

Result<std::chrono::milliseconds> parse_duration(std::string_view text) {
  double number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  const std::string_view unit(end, static_cast<std::size_t>(text.data() + text.size() - end));
  double factor = 0;
  if (unit == "ms") factor = 1;
  if (unit == "s" || unit.empty()) factor = 1000;
  if (unit == "m") factor = 60'000;
  if (unit == "h") factor = 3'600'000;
  constexpr double kLongest = 365.0 * 24 * 3'600'000;
  const bool sound = error == std::errc() && !text.empty() && factor > 0 && number >= 0 &&
                     number * factor <= kLongest;
  if (!sound) {
    return fail(ErrorCode::invalid_request,
                fmt::format("takes a duration such as 500ms, 30s, 2m or 1h, not \"{}\"", text));
  }
  return std::chrono::milliseconds(static_cast<std::int64_t>(number * factor));
}

}  // namespace werk::app
