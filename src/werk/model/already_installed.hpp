// Whether the weights that an import would bring are installed already, under whatever id. Blocks
// on the disk for a look at the files; any thread.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "werk/model/import_plan.hpp"
#include "werk/model/known_digests.hpp"
#include "werk/model/store.hpp"

namespace werk::model {

// The id of the installed model whose weights have the digests of these, where those are known
// without reading.
std::optional<std::string> installed_already(const ImportPlan& plan,
                                             const std::vector<InstalledModel>& installed,
                                             const KnownDigests& digests);

// Whether the name is an id or an alias of one of them.
bool is_taken(std::string_view name, const std::vector<InstalledModel>& installed);

std::vector<Manifest> manifests_of(const std::vector<InstalledModel>& installed);

}  // namespace werk::model
