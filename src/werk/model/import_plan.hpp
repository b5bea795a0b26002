// Which files a model consists of, found from the one a person names: all files of a split set, and
// a projector that lies beside it. Every file's GGUF header is read, nothing is written. No state;
// blocks on the disk; any thread.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "werk/base/result.hpp"
#include "werk/model/gguf.hpp"
#include "werk/model/manifest.hpp"

namespace werk::model {

struct PlannedFile {
  FileRole role = FileRole::weights;
  std::filesystem::path path;  // absolute
  std::string name;            // in the store; unique in the plan
  std::uint64_t size_bytes = 0;
  std::int64_t modified_ns = 0;
};

struct ImportPlan {
  std::vector<PlannedFile> files;  // weights in order, then the projector
  GgufInfo weights;                // of the first file, with tensors and parameters of all
  std::optional<GgufInfo> projector;
  // What a folder that is a model says of itself; `weights` says nothing then.
  std::optional<Manifest> facts = std::nullopt;
};

// With ProjectorRule::beside, find_projector() chooses. A path is taken as it is.
enum class ProjectorRule : std::uint8_t { beside, none };

// Why a file of that purpose is no model by itself, as a sentence; empty for models.
std::string_view no_model_because(GgufPurpose purpose);

// Fails with `not_found`, `io` or `model_unusable`; messages name the file's path, since they go to
// the terminal.
Result<ImportPlan> plan_import(const std::filesystem::path& path, ProjectorRule rule,
                               const std::optional<std::filesystem::path>& projector);

// The header of a file; messages name its path.
Result<GgufInfo> read_header(const std::filesystem::path& path);

// The plan as a manifest without id, digests and anything else the plan cannot know.
Manifest manifest_of(const ImportPlan& plan);

}  // namespace werk::model
