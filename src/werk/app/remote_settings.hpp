// Remotes as the settings have them: a table [remotes.NAME] of the file each, or `--remote
// NAME=URL`, which wins over the table's url and leaves the rest of it. Faults name the line and
// the key. Of a key only the variable that holds it is named, here and everywhere. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "werk/app/config_file.hpp"
#include "werk/base/result.hpp"
#include "werk/engine/remote/peer.hpp"

namespace werk::app {

struct RemoteEntry {
  std::string name;
  engine::remote::RemoteUrl url;
  std::optional<std::string> key_env;
  std::vector<std::string> models;
  std::size_t parallel = 0;                          // calls at a time; 0: as they come
  std::optional<std::chrono::milliseconds> silence;  // instead of the node's
  engine::remote::PeerKind kind = engine::remote::PeerKind::unknown;
  std::string source;  // "werk.toml:12", "--remote"
};

// The value of `remotes`; what isn't sound becomes a fault of the file and is left out.
std::vector<RemoteEntry> read_remotes(const ConfigEntry& remotes, ConfigFile& file);

// Of `--remote`.
Status add_remote(std::vector<RemoteEntry>& remotes, const std::string& name_and_url);

// NAME=URL, one a line.
std::string show_remotes(const std::vector<RemoteEntry>& remotes);

}  // namespace werk::app
