// What a person may set about vLLM, as plain data, and what Werk makes of the words that are meant
// for it. The app fills it from flags and WERK_VLLM_* variables; launch.hpp turns it into a launch
// line. Everything about capacity is vLLM's own and stands in the words: Werk bounds none of its
// calls. Pure values, any thread.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "werk/base/result.hpp"

namespace werk::engine::vllm {

inline constexpr std::string_view kEngineName = "vllm";
inline constexpr std::string_view kModelFormat = "safetensors";

// Whether prefix caching is asked for on the launch line (--persistence) or left to vLLM.
enum class PrefixCaching : std::uint8_t { native, asked };

struct VllmOptions {
  std::optional<std::string> python;         // WERK_VLLM_PYTHON; else `vllm` of PATH
  std::vector<std::string> extra_arguments;  // the words of WERK_VLLM_ARGS, appended last
  std::chrono::seconds health_timeout{300};  // of a whole start
  std::optional<std::string> log;            // a file that takes its output besides the logs
  PrefixCaching prefix_caching = PrefixCaching::native;

  bool operator==(const VllmOptions&) const = default;
};

// Whether a flag stands among the words, in any spelling that vLLM takes ("--a-b", "--a_b",
// "--a-b=1") or switched off ("--no-a-b"). `flag` is spelled "--a-b".
bool speaks_of(std::span<const std::string> words, std::string_view flag);

// Refuses words that would take the engine out of Werk's hands: its socket, its key, its model, its
// name. The message says what is wrong without naming where the words came from.
Status check_arguments(std::span<const std::string> words);

}  // namespace werk::engine::vllm
