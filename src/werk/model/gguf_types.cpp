#include "werk/model/gguf_types.hpp"

#include <fmt/format.h>

#include <array>

namespace werk::model {
namespace {

constexpr TensorType removed(std::string_view name) { return {name, 0, 0}; }

constexpr std::array<TensorType, 43> kTensorTypes = {{
    {"F32", 1, 4},
    {"F16", 1, 2},
    {"Q4_0", 32, 18},
    {"Q4_1", 32, 20},
    removed("Q4_2"),
    removed("Q4_3"),
    {"Q5_0", 32, 22},
    {"Q5_1", 32, 24},
    {"Q8_0", 32, 34},
    {"Q8_1", 32, 36},
    {"Q2_K", 256, 84},
    {"Q3_K", 256, 110},
    {"Q4_K", 256, 144},
    {"Q5_K", 256, 176},
    {"Q6_K", 256, 210},
    {"Q8_K", 256, 292},
    {"IQ2_XXS", 256, 66},
    {"IQ2_XS", 256, 74},
    {"IQ3_XXS", 256, 98},
    {"IQ1_S", 256, 50},
    {"IQ4_NL", 32, 18},
    {"IQ3_S", 256, 110},
    {"IQ2_S", 256, 82},
    {"IQ4_XS", 256, 136},
    {"I8", 1, 1},
    {"I16", 1, 2},
    {"I32", 1, 4},
    {"I64", 1, 8},
    {"F64", 1, 8},
    {"IQ1_M", 256, 56},
    {"BF16", 1, 2},
    removed("Q4_0_4_4"),
    removed("Q4_0_4_8"),
    removed("Q4_0_8_8"),
    {"TQ1_0", 256, 54},
    {"TQ2_0", 256, 66},
    removed("IQ4_NL_4_4"),
    removed("IQ4_NL_4_8"),
    removed("IQ4_NL_8_8"),
    {"MXFP4", 32, 17},
    {"NVFP4", 64, 36},
    {"Q1_0", 128, 18},
    {"Q2_0", 64, 18},
}};

constexpr std::array<std::string_view, 42> kFileTypes = {
    "F32",     "F16",    "Q4_0",   "Q4_1",   "Q4_1",   "Q4_2",   "Q4_3",   "Q8_0",    "Q5_0",
    "Q5_1",    "Q2_K",   "Q3_K_S", "Q3_K_M", "Q3_K_L", "Q4_K_S", "Q4_K_M", "Q5_K_S",  "Q5_K_M",
    "Q6_K",    "IQ2_XXS", "IQ2_XS", "Q2_K_S", "IQ3_XS", "IQ3_XXS", "IQ1_S", "IQ4_NL",  "IQ3_S",
    "IQ3_M",   "IQ2_S",  "IQ2_M",  "IQ4_XS", "IQ1_M",  "BF16",   "Q4_0_4_4", "Q4_0_4_8", "Q4_0_8_8",
    "TQ1_0",   "TQ2_0",  "MXFP4",  "NVFP4",  "Q1_0",   "Q2_0",
};

// Set when the writer guessed the type from the tensors instead of being told.
constexpr std::uint64_t kGuessed = 1024;

}  // namespace

std::optional<TensorType> tensor_type(std::uint32_t number) {
  if (number >= kTensorTypes.size()) return std::nullopt;
  return kTensorTypes[number];
}

std::string file_type_name(std::uint64_t number) {
  const std::uint64_t type = number & ~kGuessed;
  if (type < kFileTypes.size()) return std::string(kFileTypes[type]);
  return fmt::format("unknown ({})", number);
}

}  // namespace werk::model
