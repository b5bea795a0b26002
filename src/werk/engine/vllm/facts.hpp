// What a vLLM says of itself on its status routes, and what the end of its output tells about its
// end. Pure; any thread. Source: the answers of 0.32.0.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "werk/base/result.hpp"

namespace werk::engine::vllm {

struct ServedModel {
  std::uint64_t context_tokens = 0;  // 0: not told
};

// From the answer to /v1/models. Fails with `start_failed` where another model is served than the
// one of this name.
Result<ServedModel> check_serves(std::string_view models_body, std::string_view name);

// From the answer to /version; empty where it can't be read.
std::string version_in(std::string_view version_body);

// The lines that tell why it ended, at most `bytes_max` bytes: the last lines that name an error,
// else the last ones. Fit for an error message.
std::string telling_lines(std::string_view output, std::size_t bytes_max);

// Why it ended during its start. `output` is masked already. `model_unusable` where no later try
// can do better: vLLM doesn't know the architecture, or the files are damaged.
Error start_failure(std::string_view exit_text, std::string_view output);

}  // namespace werk::engine::vllm
