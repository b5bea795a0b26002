#include "werk/engine/vllm/options.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace werk::engine::vllm {
namespace {

constexpr std::array<std::string_view, 13> kReserved{"--host",
                                                     "--port",
                                                     "--uds",
                                                     "--api-key",
                                                     "--served-model-name",
                                                     "--model",
                                                     "--root-path",
                                                     "--headless",
                                                     "--ssl-keyfile",
                                                     "--ssl-certfile",
                                                     "--grpc",
                                                     "--config",
                                                     "--api-server-count"};

// "--served_model_name=x" is "--served-model-name" to vLLM.
std::string plain_flag(std::string_view word) {
  std::string flag(word.substr(0, word.find('=')));
  std::ranges::replace(flag, '_', '-');
  return flag;
}

}  // namespace

bool speaks_of(std::span<const std::string> words, std::string_view flag) {
  const std::string off = fmt::format("--no-{}", flag.substr(2));
  return std::ranges::any_of(words, [&](const std::string& word) {
    const std::string plain = plain_flag(word);
    return plain == flag || plain == off;
  });
}

Status check_arguments(std::span<const std::string> words) {
  for (const std::string& word : words) {
    const std::string plain = plain_flag(word);
    if (std::ranges::find(kReserved, plain) == kReserved.end()) continue;
    return fail(ErrorCode::invalid_request,
                fmt::format("holds {}, which Werk itself decides: an engine is reached over a "
                            "private socket and serves the model that was asked for",
                            plain));
  }
  return {};
}

}  // namespace werk::engine::vllm
