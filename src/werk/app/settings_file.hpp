// Reads the keys of a settings file by the table of options: each is known, of the right type, in
// its range, and given once; what isn't becomes a fault with its line, so that all are told at
// once. Says what the file sets; settings.cpp decides what counts. Pure, any thread.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "werk/app/config_file.hpp"
#include "werk/app/settings.hpp"

namespace werk::app {

// One sound entry.
struct FileValue {
  std::vector<std::string> values;  // as Access::set takes them; none: a flag that is false
  std::uint32_t line = 0;
};

using FileValues = std::map<std::string, FileValue, std::less<>>;

struct FileModel {
  std::string id;
  std::uint32_t line = 0;
  FileValues values;  // by the key in [models."ID"]
  std::vector<RequestDefault> defaults;
};

struct FileSettings {
  FileValues values;  // of the top level, by key
  std::vector<FileModel> models;
  std::vector<RemoteEntry> remotes;
  std::uint32_t remotes_line = 0;  // 0: there are none
};

// `user_home` is where "~" leads.
FileSettings read_file_settings(ConfigFile& file, const std::optional<std::string>& user_home);

}  // namespace werk::app
