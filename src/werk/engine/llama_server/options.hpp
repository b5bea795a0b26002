// What a person may set about llama-server, as plain data: one LlamaServerOptions for all of its
// five modes, and where its executables are named. The app fills them from flags and WERK_LLAMA_*
// variables; launch.hpp turns them into a launch line. Everything that is not set is left to Werk's
// own rules or to the engine. Pure values, any thread.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "werk/base/result.hpp"

namespace werk::engine::llama_server {

// The processor or the kind of accelerator that computes. Each is an engine of its own name:
// "llama-cpu", "llama-cuda".
enum class Mode : std::uint8_t { cpu, cuda, rocm, vulkan, metal };

inline constexpr std::array kModes{Mode::cpu, Mode::cuda, Mode::rocm, Mode::vulkan, Mode::metal};

std::string_view name_of(Mode mode);  // "cpu"
std::string engine_name(Mode mode);   // "llama-cpu"
std::string variable_of(Mode mode);   // "WERK_LLAMA_SERVER_CPU"
std::optional<Mode> mode_of(std::string_view engine_name);

enum class Switch : std::uint8_t { off, on };

// A file of the user's own that a model runs with. The identity is a digest of its content, or what
// tells it from another file at its path.
struct OwnFile {
  std::string path;
  std::string identity;
  std::uint64_t size_bytes = 0;

  bool operator==(const OwnFile&) const = default;
};

struct LlamaServerOptions {
  std::uint32_t parallel = 1;             // native slots, each with a context of its own
  std::optional<std::uint64_t> ctx_size;  // tokens per slot; 0: the engine decides
  std::optional<std::uint32_t>
      batch_size;  // tokens; a prefill can be stopped only between two of these batches
  std::optional<std::uint32_t> ubatch_size;    // tokens
  std::optional<std::uint32_t> threads;        // for generation
  std::optional<std::uint32_t> threads_batch;  // for prompts
  std::optional<std::string> gpu_layers;       // a number, "auto" or "all"
  std::optional<std::uint32_t> main_gpu;
  std::optional<std::string> kv_cache_type;  // for keys and values alike: "f16", "q8_0", ...
  std::optional<std::string> flash_attn;     // "on", "off" or "auto"
  std::optional<Switch> kv_offload;
  std::vector<std::string> extra_arguments;  // the words of WERK_LLAMA_ARGS, appended last
  // Of one model: instead of the template in its weights, instead of the projector beside it, and
  // the executable that runs it alone.
  std::optional<OwnFile> chat_template;
  std::optional<OwnFile> projector;
  std::optional<std::string> executable;

  bool operator==(const LlamaServerOptions&) const = default;
};

// Refuses what can never work: no slot, a word that a setting doesn't know, and extra arguments
// that would take the engine out of Werk's hands (its socket, its key, its model, its name). The
// message names the setting and what it takes.
Status check_options(const LlamaServerOptions& options);

// What WERK_LLAMA_SERVER_<MODE> and WERK_LLAMA_SERVER name: paths, or names to be found in PATH.
struct NamedExecutables {
  std::array<std::optional<std::string>, kModes.size()> by_mode;
  std::optional<std::string> any_mode;
  std::string any_mode_name = "WERK_LLAMA_SERVER";  // where it was named, for messages
};

}  // namespace werk::engine::llama_server
