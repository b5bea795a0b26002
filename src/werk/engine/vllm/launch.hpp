// The launch line of a vLLM as a pure decision: what a model and the options come to, word for
// word, and the runtime key that follows. Werk decides the model's folder, the served name and what
// makes cached tokens visible; every word of the user's own comes last and is kept as it is. Any
// thread. Source of the flags: `vllm serve --help` of 0.32.0, and their seen effect.
#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "werk/engine/engine.hpp"
#include "werk/engine/vllm/options.hpp"

namespace werk::engine::vllm {

// Fails with `invalid_request` for words that can never work, and with `model_unusable` when the
// model has no weights.
Result<StartPlan> plan_start(const model::Manifest& manifest, const std::filesystem::path& folder,
                             const VllmOptions& options);

// The plan's words as this version takes them: "serve", the folder, and the rest. What it doesn't
// know and Werk can do without is left out; a version that can't be read knows everything.
std::vector<std::string> words_for(const StartPlan& plan, std::string_view version);

// `own` without what would tell an engine a secret or put it into other hands, plus its key. vLLM's
// own variables stay: some of its capacity can be set in no other way.
std::vector<std::string> child_environment(std::span<const std::string> own,
                                           std::string_view secret);

}  // namespace werk::engine::vllm
