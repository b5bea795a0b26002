// What servers of a known kind take beside OpenAI's dialect and where they count, in one place: the
// adapters that start them use it and so do remotes, where somebody else started one. Plain data
// without state; any thread. Sources: docs/concurrency.md, and what was seen of llama.cpp v0.5.0
// and vLLM 0.32.
#pragma once

#include <string_view>

#include "werk/engine/engine.hpp"

namespace werk::engine {

// Where a chat body is counted and not run, and which member of the answer holds the count.
struct CountRoute {
  std::string_view path;
  std::string_view member;
};

inline constexpr CountRoute kLlamaServerCount{"/chat/completions/input_tokens",
                                              "input_tokens"};  // below the API's prefix (/v1)
inline constexpr CountRoute kVllmCount{"/tokenize", "count"};   // beside it

// A llama-server as it is whatever its chat template; vLLM is ChatProfile() as it stands.
ChatProfile llama_server_profile();

}  // namespace werk::engine
