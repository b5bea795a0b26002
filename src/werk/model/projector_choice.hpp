// Which projector that lies beside a model is its own. One is when its name says projector
// ("mmproj"), its header does too, and its projection length is the model's embedding length; one
// that is named after another model of the folder is not. No state; blocks on the disk; any thread.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string_view>

#include "werk/model/gguf.hpp"

namespace werk::model {

struct FoundProjector {
  std::filesystem::path path;
  GgufInfo info;
};

bool is_projector_name(std::string_view file_name);

// Looks in the folder of the weights, and one above when that one is a quantization's ("Q4_K_M").
// Of several the one with the model's name, then the one in F16, else BF16, else the first by name.
// What cannot be read is none.
std::optional<FoundProjector> find_projector(const std::filesystem::path& weights,
                                             std::uint64_t embedding_length);

}  // namespace werk::model
