// The id a model gets when nobody names one, as people who run models write it: "NAME:QUANTIZATION"
// ("Qwen3-8B:Q4_K_M"), or "ORG/REPOSITORY:QUANTIZATION" for a file of the Hugging Face hub's cache.
// The name is the file's; where that says nothing ("model.gguf", a digest), it is what the header
// says, else the folder's. Pure; any thread.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "werk/model/gguf.hpp"

namespace werk::model {

struct NameParts {
  std::string base;          // "Qwen3-8B"
  std::string quantization;  // "UD-Q4_K_XL"; empty: the name tells none
};

// Parts a name without ending ("Qwen3-8B-UD-Q4_K_XL", "SmolLM2.q4_1", "Q8_0") at the quantization
// that stands at its end. The quantization is in upper case.
NameParts part_name(std::string_view stem);

// The name of a model file without its ending and, of a split set, its number.
std::string model_stem(std::string_view file_name);

// "ORG/REPOSITORY" of a path within the hub's cache (.../models--ORG--REPOSITORY/snapshots/...);
// empty for others.
std::string hub_repository(const std::filesystem::path& path);

// Always a valid id.
std::string default_model_id(const std::filesystem::path& path, const GgufInfo& info);

// Of a folder that is a model: "ORG/REPOSITORY" in the hub's cache, else the folder's own name.
std::string folder_model_id(const std::filesystem::path& folder);

// Any text as an id: spaces at the ends, control characters and empty parts are taken out, and what
// is too long is cut. "model" where nothing is left.
std::string tidied_model_id(std::string_view text);

}  // namespace werk::model
