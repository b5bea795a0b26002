// The Hugging Face hub's cache: models--ORG--REPOSITORY/snapshots/REVISION/FILE, where files are
// links to blobs that are named by their digest. A model is called ORG/REPOSITORY:QUANTIZATION, as
// llama.cpp's -hf takes it.
#include <algorithm>
#include <fstream>
#include <set>

#include "werk/base/text.hpp"
#include "werk/model/model_folder.hpp"
#include "werk/model/model_name.hpp"
#include "werk/model/tool_reading.hpp"

namespace werk::model {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kTool = "Hugging Face";

// What is told of the branch "main" comes first, then the others by name.
std::vector<fs::path> snapshots_of(const fs::path& repository, ToolScan& scan) {
  std::vector<fs::path> snapshots = entries_of(repository / "snapshots", kTool, scan);
  std::string main;
  std::ifstream(repository / "refs" / "main") >> main;
  std::stable_partition(snapshots.begin(), snapshots.end(),
                        [&](const fs::path& path) { return path.filename() == main; });
  return snapshots;
}

class Repository {
 public:
  Repository(std::string name, ToolScan& scan) : name_(std::move(name)), scan_(scan) {}

  void read(const fs::path& snapshot) {
    const auto found = find_models(snapshot);
    if (!found) return;
    for (const ModelInFolder& one : found->models) {
      // An older revision of what is known already.
      if (!files_.insert(one.path.lexically_relative(snapshot)).second) continue;
      std::string name = default_model_id(one.path, one.info);
      if (!names_.insert(name).second) {
        name = tidied_model_id(name_ + ":" + model_stem(one.path.filename().string()));
        if (!names_.insert(name).second) continue;
      }
      scan_.models.push_back(
          planned_model(kTool, name, one.path, ProjectorRule::beside, std::nullopt));
    }
    for (const NoModel& one : found->others) {
      if (!files_.insert(one.path.lexically_relative(snapshot)).second) continue;
      const std::string name = name_ + ":" + model_stem(one.path.filename().string());
      scan_.models.push_back(
          unusable_model(kTool, tidied_model_id(name), one.path, one.error.message));
    }
  }

  bool is_empty() const { return files_.empty(); }

 private:
  std::string name_;
  ToolScan& scan_;
  std::set<fs::path> files_;
  std::set<std::string> names_;
};

}  // namespace

void read_hub(const fs::path& folder, ToolScan& scan) {
  for (const fs::path& entry : entries_of(folder, kTool, scan)) {
    if (!entry.filename().string().starts_with("models--")) continue;
    const std::vector<fs::path> snapshots = snapshots_of(entry, scan);
    if (snapshots.empty()) continue;
    const std::string name = tidied_model_id(hub_repository(snapshots.front()));
    Repository repository(name, scan);
    for (const fs::path& snapshot : snapshots) repository.read(snapshot);
    if (!repository.is_empty()) continue;
    std::string reason = other_weights(entries_of(snapshots.front(), kTool, scan));
    if (reason.empty()) continue;
    scan.models.push_back(unusable_model(kTool, name, snapshots.front(), std::move(reason)));
  }
}

}  // namespace werk::model
