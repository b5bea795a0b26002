#include "werk/model/already_installed.hpp"

#include <algorithm>

namespace werk::model {
namespace {

std::vector<std::string> digests_of_weights(const Manifest& manifest) {
  std::vector<std::string> digests;
  for (const ManifestFile& file : manifest.files) {
    if (file.role == FileRole::weights) digests.push_back(file.sha256);
  }
  return digests;
}

}  // namespace

std::optional<std::string> installed_already(const ImportPlan& plan,
                                             const std::vector<InstalledModel>& installed,
                                             const KnownDigests& digests) {
  std::vector<std::string> wanted;
  for (const PlannedFile& file : plan.files) {
    if (file.role != FileRole::weights) continue;
    auto digest = digests.find(file.path);
    if (!digest) return std::nullopt;
    wanted.push_back(std::move(*digest));
  }
  for (const InstalledModel& model : installed) {
    if (digests_of_weights(model.manifest) == wanted) return model.manifest.id;
  }
  return std::nullopt;
}

bool is_taken(std::string_view name, const std::vector<InstalledModel>& installed) {
  return std::any_of(installed.begin(), installed.end(), [&](const InstalledModel& model) {
    const auto& aliases = model.manifest.aliases;
    return model.manifest.id == name ||
           std::find(aliases.begin(), aliases.end(), name) != aliases.end();
  });
}

std::vector<Manifest> manifests_of(const std::vector<InstalledModel>& installed) {
  std::vector<Manifest> manifests;
  manifests.reserve(installed.size());
  for (const InstalledModel& model : installed) manifests.push_back(model.manifest);
  return manifests;
}

}  // namespace werk::model
