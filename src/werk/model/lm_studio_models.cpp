// LM Studio: PUBLISHER/REPOSITORY/FILE. A model is called as its own server calls it: the
// repository in small letters without "-gguf", and "@QUANTIZATION" where there are several.
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "werk/base/text.hpp"
#include "werk/model/model_folder.hpp"
#include "werk/model/model_name.hpp"
#include "werk/model/tool_reading.hpp"

namespace werk::model {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kTool = "LM Studio";

struct Place {
  std::string publisher;
  std::string repository;
};

Place place_of(const fs::path& path, const fs::path& folder) {
  std::vector<std::string> parts;
  for (const fs::path& part : path.lexically_relative(folder)) parts.push_back(part.string());
  if (parts.size() < 3) return {};
  return {parts[0], parts[1]};
}

std::string key_of(const Place& place) {
  std::string key = to_lower(place.repository);
  if (key.ends_with("-gguf")) key.resize(key.size() - 5);
  return tidied_model_id(key);
}

void read_models(const FolderModels& found, const fs::path& folder, ToolScan& scan) {
  std::map<std::string, int> of_key;
  for (const ModelInFolder& one : found.models) {
    const Place place = place_of(one.path, folder);
    if (!place.repository.empty()) ++of_key[key_of(place)];
  }
  std::map<std::string, int> used;
  for (const ModelInFolder& one : found.models) {
    const Place place = place_of(one.path, folder);
    std::string name =
        place.repository.empty() ? default_model_id(one.path, one.info) : key_of(place);
    if (of_key[name] > 1) {
      const NameParts parts = part_name(model_stem(one.path.filename().string()));
      const std::string& quantization =
          parts.quantization.empty() ? one.info.quantization : parts.quantization;
      name = tidied_model_id(name + "@" + to_lower(quantization));
    }
    if (++used[name] > 1) name = tidied_model_id(place.publisher + "/" + name);
    scan.models.push_back(
        planned_model(kTool, std::move(name), one.path, ProjectorRule::beside, std::nullopt));
  }
}

}  // namespace

void read_lm_studio(const fs::path& folder, ToolScan& scan) {
  std::error_code error;
  if (!fs::exists(folder, error) && !error) return;
  const auto found = find_models(folder);
  if (!found) {
    scan.notes.push_back(
        fmt::format("The models of {} can't be seen: {}", kTool, found.error().message));
    return;
  }
  read_models(*found, folder, scan);
  for (const NoModel& one : found->others) {
    scan.models.push_back(
        unusable_model(kTool, tidied_model_id(one.path.lexically_relative(folder).string()),
                       one.path, one.error.message));
  }
  // Repositories of another format (MLX).
  for (const fs::path& publisher : entries_of(folder, kTool, scan)) {
    for (const fs::path& repository : entries_of(publisher, kTool, scan)) {
      std::string reason = other_weights(entries_of(repository, kTool, scan));
      if (reason.empty()) continue;
      const std::string name = key_of({publisher.filename(), repository.filename()});
      scan.models.push_back(unusable_model(kTool, name, repository, std::move(reason)));
    }
  }
}

}  // namespace werk::model
