#include "tests/support/fake_engine/command_line.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <optional>

namespace werk::fake {

namespace {

struct Flag {
  std::vector<std::string> names;
  std::string value;  // what the help calls it; empty: takes none
  std::string text;
  std::string variable;
};

const std::vector<Flag>& flags() {
  static const std::vector<Flag> all = {
      {{"-h", "--help", "--usage"}, "", "print usage and exit", ""},
      {{"--version"}, "", "show version and build info", ""},
      {{"--list-devices"}, "", "print list of available devices and exit", ""},
      {{"-t", "--threads"}, "N", "number of CPU threads to use during generation", "THREADS"},
      {{"-tb", "--threads-batch"}, "N", "number of threads for prompt processing", ""},
      {{"-c", "--ctx-size"}, "N", "size of the prompt context", "CTX_SIZE"},
      {{"-b", "--batch-size"}, "N", "logical maximum batch size", "BATCH"},
      {{"-ub", "--ubatch-size"}, "N", "physical maximum batch size", "UBATCH"},
      {{"-fa", "--flash-attn"}, "[on|off|auto]", "set Flash Attention use", "FLASH_ATTN"},
      {{"-kvo", "--kv-offload", "-nkvo", "--no-kv-offload"}, "", "KV cache offloading", ""},
      {{"-ctk", "--cache-type-k"}, "TYPE", "KV cache data type for K", "CACHE_TYPE_K"},
      {{"-ctv", "--cache-type-v"}, "TYPE", "KV cache data type for V", "CACHE_TYPE_V"},
      {{"-dev", "--device"}, "<dev1,dev2,..>", "devices to use for offloading", "DEVICE"},
      {{"-ngl", "--gpu-layers", "--n-gpu-layers"}, "N", "max. layers in VRAM", "N_GPU_LAYERS"},
      {{"-sm", "--split-mode"}, "{none,layer,row,tensor}", "how to split the model", ""},
      {{"-ts", "--tensor-split"}, "N0,N1,N2,...", "fraction to offload to each GPU", ""},
      {{"-mg", "--main-gpu"}, "INDEX", "the GPU to use for the model", "MAIN_GPU"},
      {{"-fit", "--fit"}, "[on|off]", "adjust unset arguments to fit in memory", "FIT"},
      {{"-lm", "--load-mode"}, "MODE", "model loading mode", "LOAD_MODE"},
      {{"-m", "--model"}, "FNAME", "model path to load", "MODEL"},
      {{"-mm", "--mmproj"}, "FILE", "path to a multimodal projector file", "MMPROJ"},
      {{"--offline"}, "", "forces use of cache, prevents network access", "OFFLINE"},
      {{"--log-disable"}, "", "Log disable", ""},
      {{"--log-colors"}, "[on|off|auto]", "Set colored logging", "LOG_COLORS"},
      {{"--log-jsonl", "--no-log-jsonl"}, "", "Log as JSONL to stdout", ""},
      {{"-lv", "--verbosity", "--log-verbosity"}, "N", "Set the verbosity threshold", ""},
      {{"--poll"}, "<0...100>", "polling level to wait for work", ""},
      {{"-s", "--seed"}, "SEED", "RNG seed", ""},
      {{"--temp", "--temperature"}, "N", "temperature", ""},
      {{"-cram", "--cache-ram"}, "N", "set the maximum cache size in MiB", "CACHE_RAM"},
      {{"-kvu", "--kv-unified", "-no-kvu", "--no-kv-unified"}, "", "unified KV buffer", ""},
      {{"--context-shift", "--no-context-shift"}, "", "use context shift", ""},
      {{"--warmup", "--no-warmup"}, "", "perform warmup with an empty run", ""},
      {{"-np", "--parallel"}, "N", "number of server slots (default: -1)", "N_PARALLEL"},
      {{"-cb", "--cont-batching", "-nocb", "--no-cont-batching"}, "", "batching", ""},
      {{"-a", "--alias"}, "STRING", "set model name aliases, comma-separated", "ALIAS"},
      {{"--host"}, "HOST", "addresses, or UNIX socket paths ending in .sock", "HOST"},
      {{"--port"}, "PORT", "port to listen", "PORT"},
      {{"--cors-origins"}, "ORIGINS", "allowed origins for CORS", "CORS_ORIGINS"},
      {{"--ui", "--webui", "--no-ui", "--no-webui"}, "", "enable the UI", "UI"},
      {{"--embedding", "--embeddings"}, "", "only support embedding", "EMBEDDINGS"},
      {{"--api-key"}, "KEY", "API keys, comma-separated (env: LLAMA_API_KEY)", ""},
      {{"--api-key-file"}, "FNAME", "path to file containing API keys", ""},
      {{"-to", "--timeout"}, "N", "server read/write timeout in seconds", "TIMEOUT"},
      {{"--threads-http"}, "N", "threads used to process HTTP requests", "THREADS_HTTP"},
      {{"--cache-prompt", "--no-cache-prompt"}, "", "prompt caching", ""},
      {{"--cache-reuse"}, "N", "min chunk size to reuse", "CACHE_REUSE"},
      {{"--metrics"}, "", "prometheus compatible metrics endpoint", ""},
      {{"--props"}, "", "changing global properties via POST /props", ""},
      {{"--slots", "--no-slots"}, "", "expose slots monitoring endpoint", ""},
      {{"--slot-save-path"}, "PATH", "path to save slot kv cache", ""},
      {{"--jinja", "--no-jinja"}, "", "use jinja template engine for chat", "JINJA"},
      {{"--reasoning-format"}, "FORMAT", "thought tags", "REASONING_FORMAT"},
      {{"--chat-template"}, "JINJA_TEMPLATE", "custom jinja chat template", ""},
      {{"--chat-template-file"}, "FILE", "custom jinja chat template file", ""},
      {{"-sps", "--slot-prompt-similarity"}, "SIMILARITY", "prompt similarity", ""},
      {{"--cache-idle-slots", "--no-cache-idle-slots"}, "", "cache idle slots", ""},
      {{"-ctxcp", "--ctx-checkpoints"}, "N", "context checkpoints per slot", ""},
      {{"--sleep-idle-seconds"}, "N", "seconds of idleness before sleep", ""},
      {{"--lora"}, "FNAME", "path to LoRA adapter", ""},
      {{"--pooling"}, "{none,mean,cls,last,rank}", "pooling type for embeddings", ""},
  };
  return all;
}

const Flag* find(const std::string& word) {
  for (const Flag& flag : flags()) {
    if (std::ranges::find(flag.names, word) != flag.names.end()) return &flag;
  }
  return nullptr;
}

bool taken_away(const Flag& flag, const Settings& settings) {
  return std::ranges::any_of(settings.help_without, [&flag](const std::string& name) {
    return std::ranges::find(flag.names, name) != flag.names.end();
  });
}

void add_keys(CommandLine& line, const std::string& text, char separator) {
  std::string rest = text;
  while (!rest.empty()) {
    const std::size_t end = std::min(rest.find(separator), rest.size());
    if (end > 0) line.api_keys.push_back(rest.substr(0, end));
    rest.erase(0, end + 1);
  }
}

void apply(CommandLine& line, const std::string& name, const std::string& value) {
  if (name == "-m") line.model = value;
  if (name == "-a") line.alias = value;
  if (name == "--host") line.host = value;
  if (name == "--port") line.port = static_cast<std::uint16_t>(std::stoul(value));
  if (name == "-np") line.parallel = std::stoll(value);
  if (name == "-c") line.context = std::stoull(value);
  if (name == "--api-key") add_keys(line, value, ',');
  if (name == "--api-key-file") {
    std::ifstream file(value);
    for (std::string key; std::getline(file, key);) add_keys(line, key, '\n');
  }
  if (name == "--embedding") line.embeddings = true;
  if (name == "--metrics") line.metrics = true;
  if (name == "-h") line.help = true;
  if (name == "--version") line.version = true;
  if (name == "--list-devices") line.list_devices = true;
}

}  // namespace

CommandLine read_command_line(const std::vector<std::string>& words) {
  CommandLine line;
  if (const char* key = std::getenv("LLAMA_API_KEY"); key != nullptr) add_keys(line, key, ',');
  for (std::size_t i = 0; i < words.size(); ++i) {
    const Flag* flag = find(words[i]);
    if (flag == nullptr) {
      if (line.unknown.empty()) line.unknown = words[i];
      continue;
    }
    std::string value;
    if (!flag->value.empty() && i + 1 < words.size()) value = words[++i];
    apply(line, flag->names.front(), value);
  }
  return line;
}

std::string first_unknown(const std::vector<std::string>& words, const Settings& settings) {
  for (std::size_t i = 0; i < words.size(); ++i) {
    const Flag* flag = find(words[i]);
    if (flag == nullptr || taken_away(*flag, settings)) return words[i];
    if (!flag->value.empty()) ++i;
  }
  return "";
}

std::string help_text(const Settings& settings) {
  std::string text = "----- common params -----\n\n";
  for (const Flag& flag : flags()) {
    if (taken_away(flag, settings)) continue;
    std::string head;
    for (const std::string& name : flag.names) head += (head.empty() ? "" : ", ") + name;
    if (!flag.value.empty()) head += " " + flag.value;
    if (head.size() >= 40) head += "\n" + std::string(40, ' ');
    text += fmt::format("{:<40}{}\n", head, flag.text);
    if (flag.variable.empty()) continue;
    text += fmt::format("{:<40}(env: LLAMA_ARG_{})\n", "", flag.variable);
  }
  return text;
}

std::string version_text(const Settings& settings) {
  return fmt::format("version: {} (build {}, commit {})\nbuilt with GNU 12.2.0 for Linux x86_64\n",
                     settings.version, settings.build, settings.commit);
}

std::string devices_text(const Settings& settings) {
  std::string text = "Available devices:\n";
  for (const json::value& device : settings.devices) {
    text.append("  ").append(device.as_string()).append("\n");
  }
  if (settings.devices.empty()) text += "  (none)\n";
  return text;
}

Sizes sizes_of(const CommandLine& line, const Settings& settings) {
  Sizes sizes;
  const bool automatic = line.parallel <= 0;
  sizes.slots = automatic ? 4 : static_cast<std::uint64_t>(line.parallel);
  sizes.context_per_slot = settings.n_ctx_train;
  if (line.context > 0) {
    const std::uint64_t share = automatic ? line.context : line.context / sizes.slots;
    sizes.context_per_slot = std::min((share + 255) / 256 * 256, settings.n_ctx_train);
  }
  if (settings.total_slots > 0) sizes.slots = settings.total_slots;
  if (settings.n_ctx > 0) sizes.context_per_slot = settings.n_ctx;
  return sizes;
}

}  // namespace werk::fake
