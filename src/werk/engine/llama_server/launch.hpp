// The launch line of a llama-server as a pure decision: what a model and the options come to, word
// for word, and the runtime key that follows. The sizing contract stands here: `--ctx-size` is per
// slot, the engine's own `-c` is the total of all slots, so four slots of 8192 tokens are `-np 4 -c
// 32768`. Words of the user's own come last and win. Any thread. Source of the flags: `--help` of
// llama.cpp v0.5.0 and 0.7.0, and their seen effect.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "werk/base/result.hpp"
#include "werk/engine/engine.hpp"
#include "werk/engine/llama_server/options.hpp"
#include "werk/engine/llama_server/probe.hpp"

namespace werk::engine::llama_server {

// A number for each way in which threads wait for one another.
struct Threads {
  std::uint32_t spinning = 0;
  std::uint32_t yielding = 0;
};

// What a plan depends on besides the model.
struct LaunchSettings {
  Mode mode = Mode::cpu;
  LlamaServerOptions options;
  std::uint64_t memory_bytes = 0;  // of the machine; 0: unknown
  // Of an engine on the processor where the options name no number; 0: the engine's own choice,
  // which is all cores.
  Threads default_threads;
};

// -c and -np as they stand among the extra arguments; the last of each counts, as it does for the
// engine.
struct ExtraSizing {
  bool has_context = false;
  bool has_slots = false;
  std::uint64_t context_tokens_total = 0;  // 0: the engine decides, or not a number
  std::size_t slots = 0;                   // 0: the engine decides, or not a number
};

ExtraSizing sizing_in(std::span<const std::string> extra_arguments);

// For a model whose files lie in `folder`. Fails with `invalid_request` for options that can never
// work, and with `model_unusable` when the model has no weights, or a smaller training context than
// asked for (naming both numbers).
Result<StartPlan> plan_start(const model::Manifest& manifest, const std::filesystem::path& folder,
                             const LaunchSettings& settings);

// The plan's words as this executable takes them: what it doesn't know and Werk can do without is
// left out, devices of other modes are kept away from it, and threads are as many as suits the way
// in which its own wait. Fails with `start_failed` when it cannot do what was asked (more than one
// slot without --parallel), naming it.
Result<std::vector<std::string>> words_for(const StartPlan& plan, const LaunchSettings& settings,
                                           const Executable& executable);

// Of the words that it can do without, those that this executable doesn't know.
std::vector<std::string_view> missing_flags(const Executable& executable);

// `own` without everything that would change an engine's behaviour or tell it a secret of Werk's,
// plus the engine's key and what makes its threads yield.
std::vector<std::string> child_environment(std::span<const std::string> own,
                                           std::string_view secret, const LaunchSettings& settings,
                                           const Executable& executable);

// The largest context per slot, a multiple of 256, whose keys and values fit beside the weights
// into `available_bytes`; none where it can't be told or where not even 256 tokens fit.
std::optional<std::uint64_t> largest_context(const model::Manifest& manifest, std::size_t slots,
                                             std::uint64_t available_bytes);

}  // namespace werk::engine::llama_server
