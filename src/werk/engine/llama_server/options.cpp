#include "werk/engine/llama_server/options.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <span>

#include "werk/base/text.hpp"

namespace werk::engine::llama_server {
namespace {

constexpr std::array<std::string_view, 9> kCacheTypes{"f32",  "f16",    "bf16", "q8_0", "q4_0",
                                                      "q4_1", "iq4_nl", "q5_0", "q5_1"};
constexpr std::array<std::string_view, 3> kFlashAttention{"on", "off", "auto"};
constexpr std::uint32_t kParallelMax = 1024;

// What belongs to Werk: the address and the key by which it alone reaches the engine, the model it
// planned for and the name it checks the engine by.
constexpr std::array<std::string_view, 20> kReserved{"--host",
                                                     "--port",
                                                     "--reuse-port",
                                                     "--api-key",
                                                     "--api-key-file",
                                                     "--alias",
                                                     "-a",
                                                     "--api-prefix",
                                                     "-m",
                                                     "--model",
                                                     "-mu",
                                                     "--model-url",
                                                     "-hf",
                                                     "-hfr",
                                                     "--hf-repo",
                                                     "-dr",
                                                     "--docker-repo",
                                                     "--models-dir",
                                                     "--models-preset",
                                                     "--ssl-key-file"};

bool is_number(std::string_view text) {
  return !text.empty() && text.size() <= 9 &&
         std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
}

Status check_word(std::string_view setting, std::string_view value,
                  std::span<const std::string_view> known) {
  if (std::find(known.begin(), known.end(), value) != known.end()) return {};
  return fail(ErrorCode::invalid_request, fmt::format("{} is '{}'; it takes one of: {}", setting,
                                                      printable(value), fmt::join(known, ", ")));
}

Status check_positive(std::string_view setting, const std::optional<std::uint32_t>& value) {
  if (!value || *value > 0) return {};
  return fail(ErrorCode::invalid_request,
              fmt::format("{} is 0; it takes a positive number", setting));
}

Status check_numbers(const LlamaServerOptions& options) {
  if (options.parallel == 0 || options.parallel > kParallelMax) {
    return fail(ErrorCode::invalid_request,
                fmt::format("--parallel is {}; it takes a number from 1 to {}", options.parallel,
                            kParallelMax));
  }
  if (auto checked = check_positive("--batch-size", options.batch_size); !checked) return checked;
  if (auto checked = check_positive("--ubatch-size", options.ubatch_size); !checked) return checked;
  if (auto checked = check_positive("--threads", options.threads); !checked) return checked;
  return check_positive("--threads-batch", options.threads_batch);
}

}  // namespace

std::string_view name_of(Mode mode) {
  switch (mode) {
    case Mode::cpu: return "cpu";
    case Mode::cuda: return "cuda";
    case Mode::rocm: return "rocm";
    case Mode::vulkan: return "vulkan";
    case Mode::metal: return "metal";
  }
  return "cpu";
}

std::string engine_name(Mode mode) { return fmt::format("llama-{}", name_of(mode)); }

std::string variable_of(Mode mode) {
  std::string name = "WERK_LLAMA_SERVER_";
  for (const char c : name_of(mode)) name += static_cast<char>(c - 'a' + 'A');
  return name;
}

std::optional<Mode> mode_of(std::string_view engine_name_text) {
  for (const Mode mode : kModes) {
    if (engine_name(mode) == engine_name_text) return mode;
  }
  return std::nullopt;
}

Status check_options(const LlamaServerOptions& options) {
  if (auto checked = check_numbers(options); !checked) return checked;
  if (options.gpu_layers && !is_number(*options.gpu_layers) && *options.gpu_layers != "auto" &&
      *options.gpu_layers != "all") {
    return fail(ErrorCode::invalid_request,
                fmt::format("--gpu-layers is '{}'; it takes a number, 'auto' or 'all'",
                            printable(*options.gpu_layers)));
  }
  if (options.kv_cache_type) {
    auto checked = check_word("--kv-cache-type", *options.kv_cache_type, kCacheTypes);
    if (!checked) return checked;
  }
  if (options.flash_attn) {
    auto checked = check_word("--flash-attn", *options.flash_attn, kFlashAttention);
    if (!checked) return checked;
  }
  for (const std::string& word : options.extra_arguments) {
    if (std::find(kReserved.begin(), kReserved.end(), word) != kReserved.end()) {
      return fail(
          ErrorCode::invalid_request,
          fmt::format("WERK_LLAMA_ARGS holds {}, which Werk itself decides: an engine is "
                      "reached over a private socket and serves the model that was asked for",
                      word));
    }
  }
  return {};
}

}  // namespace werk::engine::llama_server
