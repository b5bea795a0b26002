// The numbers that stand for tensor types and file types in GGUF files, as tables: names, and how
// many bytes how many elements take. Source: ggml.h, ggml-common.h and llama.h of llama.cpp v0.5.0.
// Constant data, any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace werk::model {

struct TensorType {
  std::string_view name;                 // "Q4_K"
  std::uint32_t block_elements = 0;      // elements are packed in blocks of so many ...
  std::uint32_t block_bytes = 0;         // ... that take so many bytes
};

// Numbers below this one may be types, those of later engines included; above it is garbage.
inline constexpr std::uint32_t kTensorTypesMax = 128;

// The type, or none for a number that this table does not know. A removed type, which no engine
// reads any more, has a name and zero sizes.
std::optional<TensorType> tensor_type(std::uint32_t number);

// What `general.file_type` says, as people write it ("Q4_K_M"); "unknown (77)" for a number not
// known here.
std::string file_type_name(std::uint64_t number);

}  // namespace werk::model
