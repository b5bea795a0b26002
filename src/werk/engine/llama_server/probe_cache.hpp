// The file in which Finder keeps what executables said of themselves: JSON with one entry per path.
// Reading gives what can be read; a missing or damaged file is an empty cache. Writing replaces the
// file as a whole. Blocks on the disk; any thread.
#pragma once

#include <filesystem>
#include <map>
#include <string>

#include "werk/base/result.hpp"
#include "werk/engine/llama_server/finder.hpp"

namespace werk::engine::llama_server {

struct CachedProbe {
  FileIdentity identity;
  Executable executable;  // without devices
};

using CachedProbes = std::map<std::string, CachedProbe>;  // by path

std::string probes_to_json(const CachedProbes& probes);
CachedProbes probes_from_json(std::string_view text);

CachedProbes read_probes(const std::filesystem::path& file);
Status write_probes(const std::filesystem::path& file, const CachedProbes& probes);

}  // namespace werk::engine::llama_server
