// Every kind of engine of this build, as it declares itself; the documents are checked against it.
// Plain data, whatever this machine has; any thread.
#pragma once

#include <vector>

#include "werk/engine/engine.hpp"

namespace werk::app {

// In the order in which `auto` tries those that read a model's format; of a remote with the name
// NAME.
std::vector<engine::EngineInfo> engine_kinds();

}  // namespace werk::app
