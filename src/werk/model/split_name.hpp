// The names of a split model's files, as llama.cpp's gguf-split writes them:
// PREFIX-00001-of-00003.gguf. Pure; any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace werk::model {

struct SplitName {
  std::string prefix;
  std::uint32_t number = 1;  // from 1
  std::uint32_t count = 1;
};

// None when the name is not of that form or its numbers make no sense.
std::optional<SplitName> parse_split_name(std::string_view file_name);
std::string split_file_name(std::string_view prefix, std::uint32_t number, std::uint32_t count);

}  // namespace werk::model
