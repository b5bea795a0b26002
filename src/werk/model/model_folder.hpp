// Finds the models in a folder and all below it: GGUF files, each split set once, projectors apart
// from models. Headers are read to tell them apart, nothing is written. Hidden folders and links to
// folders are left out; depth and the number of files are bounded. No state; blocks on the disk;
// any thread.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "werk/base/result.hpp"
#include "werk/model/gguf.hpp"

namespace werk::model {

struct ModelInFolder {
  std::filesystem::path path;  // of a split set the first file that is there
  GgufInfo info;               // of that file
};

// A GGUF file that is no model to import, and why: `unsupported` where the file is what it is (an
// adapter, a vocabulary), other codes where something is wrong with it.
struct NoModel {
  std::filesystem::path path;
  Error error;
};

struct FolderModels {
  std::vector<ModelInFolder> models;              // by path
  std::vector<std::filesystem::path> projectors;  // by path
  std::vector<NoModel> others;                    // by path
};

inline constexpr std::size_t kFolderFilesMax = 100'000;
inline constexpr int kFolderDepthMax = 16;

// Fails with `not_found` when there is no such folder, with `io` when it can't be read or holds
// more than kFolderFilesMax files. What can't be read below it is among the others.
Result<FolderModels> find_models(const std::filesystem::path& folder);

}  // namespace werk::model
