// What a runtime is expected to take of the machine's memory, from its plan: weights as they lie on
// disk, keys and values of all slots by their context and type, and at most so much for the prompt
// cache. An estimate to decide by, not a measurement: compute buffers come on top, and models with
// a sliding window need less for keys and values. Pure, any thread.
#pragma once

#include <cstdint>
#include <optional>

#include "werk/engine/engine.hpp"
#include "werk/engine/llama_server/options.hpp"

namespace werk::engine::llama_server {

struct MemoryEstimate {
  std::uint64_t weights_bytes = 0;  // with the projector
  // None where the engine decides the context or the model's shape isn't known.
  std::optional<std::uint64_t> kv_bytes;
  std::uint64_t kv_tokens = 0;  // of all slots
  std::string key_type;         // "f16"
  std::string value_type;
  // None where the engine decides: a word of the user's own that is no number of MiB, or without
  // an end.
  std::optional<std::uint64_t> prompt_cache_bytes_max;
};

MemoryEstimate memory_of(const StartPlan& plan, const LlamaServerOptions& options);

}  // namespace werk::engine::llama_server
