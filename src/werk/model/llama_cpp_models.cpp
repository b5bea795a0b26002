// llama.cpp's cache: what -hf has fetched lies flat as ORG_REPOSITORY_FILE, and
// manifest=ORG=REPOSITORY=TAG.json says which files belong together. A model is called
// ORG/REPOSITORY:TAG, as llama.cpp lists it; a file without a manifest by its own name.
#include <fmt/format.h>

#include <algorithm>
#include <boost/json/object.hpp>
#include <set>

#include "werk/base/text.hpp"
#include "werk/model/model_folder.hpp"
#include "werk/model/model_name.hpp"
#include "werk/model/tool_reading.hpp"

namespace werk::model {
namespace {

namespace fs = std::filesystem;
namespace json = boost::json;

constexpr std::string_view kTool = "llama.cpp";
constexpr std::string_view kManifest = "manifest=";

struct Manifested {
  std::string repository;  // "ORG/REPOSITORY"
  std::string tag;
};

// None for other files.
std::optional<Manifested> manifest_name(const fs::path& path) {
  const std::string name = path.filename().string();
  if (!name.starts_with(kManifest) || path.extension() != ".json") return std::nullopt;
  const std::string whole = path.stem().string().substr(kManifest.size());
  const std::size_t first = whole.find('=');
  const std::size_t last = whole.rfind('=');
  if (first == std::string::npos || first == last) return std::nullopt;
  return Manifested{
      fmt::format("{}/{}", whole.substr(0, first), whole.substr(first + 1, last - first - 1)),
      whole.substr(last + 1)};
}

// Where a file of a repository lies in the cache; none if the manifest has no such file.
std::optional<fs::path> cached_file(const fs::path& folder, const std::string& repository,
                                    const json::object& manifest, std::string_view member) {
  const json::value* file = manifest.if_contains(member);
  const std::string name =
      file && file->is_object() ? text_in(file->get_object(), "rfilename") : std::string();
  if (name.empty()) return std::nullopt;
  std::string flat = repository + "_" + name;
  std::replace(flat.begin(), flat.end(), '/', '_');
  return folder / flat;
}

}  // namespace

void read_llama_cpp(const fs::path& folder, ToolScan& scan) {
  std::set<fs::path> known;
  for (const fs::path& entry : entries_of(folder, kTool, scan)) {
    const auto name = manifest_name(entry);
    const auto manifest = name ? read_object(entry) : std::nullopt;
    if (!manifest) continue;
    const auto weights = cached_file(folder, name->repository, *manifest, "ggufFile");
    std::error_code error;
    if (!weights || !fs::exists(*weights, error)) continue;
    auto projector = cached_file(folder, name->repository, *manifest, "mmprojFile");
    if (projector && !fs::exists(*projector, error)) projector.reset();
    known.insert(*weights);
    scan.models.push_back(planned_model(kTool, tidied_model_id(name->repository + ":" + name->tag),
                                        *weights, ProjectorRule::none, projector));
  }
  const auto found = find_models(folder);
  if (!found) return;
  for (const ModelInFolder& one : found->models) {
    if (known.contains(one.path)) continue;
    scan.models.push_back(planned_model(kTool, default_model_id(one.path, one.info), one.path,
                                        ProjectorRule::none, std::nullopt));
  }
  for (const NoModel& one : found->others) {
    if (known.contains(one.path)) continue;
    scan.models.push_back(unusable_model(kTool,
                                         tidied_model_id(model_stem(one.path.filename().string())),
                                         one.path, one.error.message));
  }
}

}  // namespace werk::model
