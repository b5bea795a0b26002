// Catalogue: the installed models at one moment, an immutable snapshot shared by everybody who
// routes. Made by whoever reads the store; pure.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "werk/model/store.hpp"

namespace werk::routing {

class Catalogue {
 public:
  explicit Catalogue(std::vector<model::InstalledModel> models) : models_(std::move(models)) {}

  // By id first, then by alias; null if there is none.
  const model::InstalledModel* find(std::string_view name) const;
  const std::vector<model::InstalledModel>& models() const { return models_; }
  // Every id and alias, for suggestions.
  std::vector<std::string> names() const;

 private:
  std::vector<model::InstalledModel> models_;
};

}  // namespace werk::routing
