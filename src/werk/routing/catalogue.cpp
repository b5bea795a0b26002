#include "werk/routing/catalogue.hpp"

#include <algorithm>

namespace werk::routing {

const model::InstalledModel* Catalogue::find(std::string_view name) const {
  for (const model::InstalledModel& model : models_) {
    if (model.manifest.id == name) return &model;
  }
  for (const model::InstalledModel& model : models_) {
    const auto& aliases = model.manifest.aliases;
    if (std::ranges::find(aliases, name) != aliases.end()) return &model;
  }
  return nullptr;
}

std::vector<std::string> Catalogue::names() const {
  std::vector<std::string> names;
  for (const model::InstalledModel& model : models_) {
    names.push_back(model.manifest.id);
    names.insert(names.end(), model.manifest.aliases.begin(), model.manifest.aliases.end());
  }
  return names;
}

}  // namespace werk::routing
