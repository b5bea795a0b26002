// How an explanation reads, and who decided which part of a launch line.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/serialize.hpp>

#include "werk/app/commands/explain.hpp"
#include "werk/app/commands/rows.hpp"
#include "werk/base/text.hpp"
#include "werk/engine/masker.hpp"

namespace werk::app {

namespace json = boost::json;

namespace {

// Which setting, if any, decides a flag, and what it comes from where that isn't set.
struct Decider {
  std::string_view flag;
  std::string_view key;
  std::string_view otherwise;
};

constexpr std::array<Decider, 20> kDeciders{{
    {"-m", "", "the model"},
    {"-mm", "mmproj", "the model's projector"},
    {"--alias", "", "the runtime key"},
    {"-np", "parallel", ""},
    {"-c", "ctx_size", "as trained, at most 32768, each slot"},
    {"-b", "batch_size", "Werk: a prompt can be stopped in between"},
    {"-ub", "ubatch_size", ""},
    {"-t", "threads", "the cores; among active_models if set or threads spin"},
    {"-tb", "threads_batch", ""},
    {"--threads-http", "", "the slots, and some for status"},
    {"-ngl", "gpu_layers", ""},
    {"-mg", "main_gpu", ""},
    {"-ctk", "kv_cache_type", ""},
    {"-ctv", "kv_cache_type", ""},
    {"-fa", "flash_attn", ""},
    {"-kvo", "kv_offload", ""},
    {"-nkvo", "kv_offload", ""},
    {"--chat-template-file", "chat_template_file", ""},
    {"--cache-ram", "", "a sixteenth of the memory, at most 8 GiB"},
    {"--device", "backend", ""},
}};

SettingSource source_of(const Settings& settings, const ModelSettings& model,
                        std::string_view model_key, std::string_view key) {
  if (const auto own = model.sources.find(model_key); own != model.sources.end())
    return own->second;
  if (const auto nodes = settings.sources.find(key); nodes != settings.sources.end())
    return nodes->second;
  return {};
}

std::string decided_by(std::string_view flag, const Settings& settings,
                       const ModelSettings& model) {
  const auto decider = std::ranges::find(kDeciders, flag, &Decider::flag);
  if (decider == kDeciders.end()) return "Werk";
  if (decider->key.empty()) return std::string(decider->otherwise);
  const SettingSource source = source_of(settings, model, decider->key, decider->key);
  if (source.by == GivenBy::nobody && !decider->otherwise.empty())
    return std::string(decider->otherwise);
  return fmt::format("{} ({}){}", decider->key, source.text, flag == "-c" ? ", each slot" : "");
}

// As a person would type them; what was masked needs no quotes.
std::string shown_words(const std::vector<std::string>& words) {
  std::string line;
  for (const std::string& word : words) {
    const bool plain = !word.empty() && word.find_first_of(" \t\n\"'\\") == std::string::npos;
    if (!line.empty()) line += ' ';
    line += plain ? word : shell_line(std::vector<std::string>{word});
  }
  return line;
}

std::string bytes_or(const std::optional<std::uint64_t>& bytes) {
  return bytes ? readable_bytes(*bytes) : "unknown";
}

std::uint64_t sum_of(const engine::llama_server::MemoryEstimate& memory) {
  return memory.weights_bytes + memory.kv_bytes.value_or(0) +
         memory.prompt_cache_bytes_max.value_or(0);
}

std::string types_of(const engine::llama_server::MemoryEstimate& memory) {
  if (memory.key_type == memory.value_type) return memory.key_type;
  return fmt::format("{} and {}", memory.key_type, memory.value_type);
}

void append_memory(std::string& out, const Explanation& it) {
  const RowWidths widths{2, 14, 20};
  const auto& memory = it.memory;
  out += "\nMemory, without compute buffers\n";
  append_row(out, widths, "weights", readable_bytes(memory.weights_bytes), "");
  append_row(out, widths, "keys, values", bytes_or(memory.kv_bytes),
             memory.kv_bytes ? fmt::format("{} tokens as {}", memory.kv_tokens, types_of(memory))
                             : "the context or the model's shape is not known");
  if (memory.prompt_cache_bytes_max != 0)
    append_row(out, widths, "prompt cache",
               memory.prompt_cache_bytes_max
                   ? "at most " + readable_bytes(*memory.prompt_cache_bytes_max)
                   : "the engine decides",
               "as prompts come");
  const bool whole = memory.kv_bytes && memory.prompt_cache_bytes_max;
  append_row(out, widths, "sum",
             fmt::format("{} {}", whole ? "at most" : "at least", readable_bytes(sum_of(memory))),
             "");
  if (it.machine_bytes == 0) return;
  std::string machine = readable_bytes(it.machine_bytes);
  if (it.available_bytes > 0)
    machine += fmt::format(", {} of it available now", readable_bytes(it.available_bytes));
  append_row(out, widths, "this machine", machine, "");
  const std::uint64_t least = memory.weights_bytes + memory.kv_bytes.value_or(0);
  if (it.engine == "llama-cpu" && least > it.machine_bytes) {
    append_row(out, widths, "",
               "It does not fit: weights, keys and values alone are more than this "
               "machine has. Fewer slots, a smaller context (ctx_size) or another kv_cache_type "
               "take less.",
               "");
  }
}

}  // namespace

std::vector<LaunchPart> launch_parts(const std::vector<std::string>& words,
                                     const Settings& settings, const ModelSettings& model) {
  const std::vector<std::string>& extra = model.llama.extra_arguments;
  const std::size_t own = words.size() - std::min(extra.size(), words.size());
  std::vector<LaunchPart> parts;
  parts.push_back({{"--host", "<socket>"}, "a private socket"});
  for (std::size_t i = 0; i < own; ++i) {
    if (words[i].starts_with('-') || i == 0)
      parts.push_back({{}, decided_by(words[i], settings, model)});
    parts.back().words.push_back(words[i]);
  }
  if (!extra.empty()) {
    const SettingSource source = source_of(settings, model, "args", "llama_args");
    const bool is_own = model.sources.contains("args");
    parts.push_back({engine::without_secrets(extra),
                     fmt::format("{} ({})", is_own ? "args" : "llama_args", source.text)});
  }
  return parts;
}

std::vector<LaunchPart> vllm_parts(const std::vector<std::string>& words,
                                   const Settings& settings) {
  const auto source = [&](std::string_view key) {
    return fmt::format("{} ({})", key, source_of(settings, {}, "", key).text);
  };
  const std::vector<std::string>& extra = settings.vllm_arguments;
  const std::size_t own = words.size() - std::min(extra.size(), words.size());
  std::vector<LaunchPart> parts = {{{"--uds", "<socket>"}, "a private socket"}};
  for (std::size_t i = 0; i < own; ++i) {
    const std::string& word = words[i];
    if (word == "serve") {
      parts.push_back({{}, "the model"});
    } else if (word == "--served-model-name") {
      parts.push_back({{}, "the runtime key"});
    } else if (word == "--enable-prefix-caching") {
      parts.push_back({{}, source("persistence")});
    } else if (word.starts_with("--") || i == 0) {
      parts.push_back({{}, "Werk"});
    }
    parts.back().words.push_back(word);
  }
  if (!extra.empty()) parts.push_back({engine::without_secrets(extra), source("vllm_args")});
  return parts;
}

std::string explain_text(const Explanation& it) {
  const RowWidths widths{2, 14, 20};
  std::string out = fmt::format("{} is served by {}\n", it.id, it.engine);
  append_row(out, widths, "asked for as", fmt::format("{}, {}", it.asked, it.found_by), "");
  append_row(out, widths, "runtime key", it.key, "");
  if (!it.server.empty()) {
    append_row(out, widths, "server", it.server, "");
    append_row(out, widths, "calls at once",
               it.slots == 0 ? "as they come" : fmt::format("{} (parallel)", it.slots), "");
    append_row(out, widths, "", "its memory, slots and cache are its own affair", "");
    return out;
  }
  const std::string context = it.context_tokens_per_slot == 0
                                  ? "of a context that the engine decides"
                                  : fmt::format("of {} tokens each", it.context_tokens_per_slot);
  const std::string slots = it.slots == 0 ? "as many as it has," : fmt::format("{}", it.slots);
  append_row(out, widths, "slots", fmt::format("{} {}", slots, context), "");
  if (!it.note.empty()) append_row(out, widths, "", it.note, "");
  append_row(out, widths, "executable", it.program, "");
  append_row(out, widths, "version", it.version, "");
  if (!it.rejected.empty()) out += "\nNot used\n";
  for (const routing::Rejected& one : it.rejected)
    append_row(out, widths, one.engine, one.reason, "");
  out += "\nLaunch line\n";
  for (const LaunchPart& part : it.parts)
    append_row(out, {0, 0, 34}, "", shown_words(part.words), part.source);
  append_memory(out, it);
  return out;
}

std::string explain_json(const Explanation& it) {
  json::object all;
  all["model"] = it.id;
  all["asked"] = it.asked;
  all["found_by"] = it.found_by;
  all["engine"] = it.engine;
  all["engine_version"] = it.version;
  json::array rejected;
  for (const routing::Rejected& one : it.rejected)
    rejected.push_back(json::object{{"engine", one.engine}, {"reason", one.reason}});
  all["rejected"] = std::move(rejected);
  all["runtime_key"] = it.key;
  all["slots"] = it.slots > 0 ? json::value(it.slots) : json::value(nullptr);
  all["context_tokens_per_slot"] = it.context_tokens_per_slot > 0
                                       ? json::value(it.context_tokens_per_slot)
                                       : json::value(nullptr);
  all["note"] = it.note.empty() ? json::value(nullptr) : json::value(it.note);
  if (!it.server.empty()) {
    all["server"] = it.server;
    return json::serialize(all);
  }
  all["program"] = it.program;
  json::array launch;
  for (const LaunchPart& part : it.parts) {
    json::array words;
    for (const std::string& word : part.words) words.emplace_back(word);
    launch.push_back(json::object{{"words", std::move(words)}, {"source", part.source}});
  }
  all["launch"] = std::move(launch);
  const auto number = [](const std::optional<std::uint64_t>& bytes) {
    return bytes ? json::value(*bytes) : json::value(nullptr);
  };
  json::object memory;
  memory["weights_bytes"] = it.memory.weights_bytes;
  memory["kv_bytes"] = number(it.memory.kv_bytes);
  memory["kv_tokens"] = it.memory.kv_tokens;
  memory["kv_type"] = types_of(it.memory);
  memory["prompt_cache_bytes_max"] = number(it.memory.prompt_cache_bytes_max);
  memory["sum_bytes_max"] = sum_of(it.memory);
  memory["machine_bytes"] = it.machine_bytes;
  memory["available_bytes"] = it.available_bytes;
  all["memory"] = std::move(memory);
  return json::serialize(all);
}

}  // namespace werk::app
