// Catalogue: the installed models at one moment, an immutable snapshot shared by everybody who
// routes. Made by whoever reads the store; pure.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "werk/model/manifest.hpp"

namespace werk::routing {

struct InstalledModel {
  model::Manifest manifest;
  std::filesystem::path folder;  // where the manifest's relative file paths start
};

class Catalogue {
 public:
  explicit Catalogue(std::vector<InstalledModel> models) : models_(std::move(models)) {}

  // By id first, then by alias; null if there is none.
  const InstalledModel* find(std::string_view name) const;
  const std::vector<InstalledModel>& models() const { return models_; }
  // Every id and alias, for suggestions.
  std::vector<std::string> names() const;

 private:
  std::vector<InstalledModel> models_;
};

}  // namespace werk::routing
