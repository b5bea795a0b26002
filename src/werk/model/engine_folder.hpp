// Models that are folders: one for ONNX Runtime GenAI (genai_config.json) or one of Hugging Face's
// form (config.json, safetensors, a tokenizer). From the folder that a person names: its format,
// what it says of itself, and the files that belong to it; what is missing is named. Code in such a
// folder is never taken along, and weights in formats that hold code (pickles) are refused. Nothing
// is written. No state; blocks on the disk; any thread.
#pragma once

#include <filesystem>

#include "werk/base/result.hpp"
#include "werk/model/import_plan.hpp"

namespace werk::model {

// Whether the folder is meant to be one of these.
bool is_engine_folder(const std::filesystem::path& folder);

// Fails with `model_unusable` and what is missing or wrong, or with `io`; messages name paths.
Result<ImportPlan> plan_engine_folder(const std::filesystem::path& folder);

}  // namespace werk::model
