// Why a llama-server did not come up or ended, told from its exit and the end of what it printed:
// which of the two kinds of fault it is (a model that can never run here, or something a later try
// may overcome), the lines that matter, and the way out. Pure values.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "werk/base/error.hpp"
#include "werk/engine/llama_server/probe.hpp"
#include "werk/engine/masker.hpp"

namespace werk::engine::llama_server {

// The lines of an engine's output that tell why it ended, without time stamps, at most `bytes_max`
// bytes: its error lines, else its last ones. Fit for an error message.
std::string telling_lines(std::string_view output, std::size_t bytes_max);

// `exit_text` as process::ExitStatus tells it, `output` already masked. `context_that_fits` (tokens
// per slot) is named where memory was the fault.
Error start_failure(std::string_view exit_text, std::string_view output,
                    const Executable& executable, std::optional<std::uint64_t> context_that_fits);

}  // namespace werk::engine::llama_server
