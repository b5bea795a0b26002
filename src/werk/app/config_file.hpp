// A settings file (werk.toml) as a plain tree: tables of entries in the order of the file, each
// with its line, so that every fault can name it. What the keys mean stands in settings_file.hpp.
// Plain values; reading blocks, any thread. The only file of Werk that knows toml++ is its source.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "werk/base/result.hpp"

namespace werk::app {

struct ConfigEntry;
struct ConfigValue;

using ConfigTable = std::vector<ConfigEntry>;
using ConfigList = std::vector<ConfigValue>;

// What TOML knows and no setting takes: dates and times.
struct ConfigTime {};

struct ConfigValue {
  std::variant<std::string, std::int64_t, double, bool, ConfigTime, ConfigList, ConfigTable> held;
};

struct ConfigEntry {
  std::string key;
  ConfigValue value;
  std::uint32_t line = 0;
};

struct Fault {
  std::uint32_t line = 0;  // 0: of the file as a whole
  std::string message;
};

struct ConfigFile {
  // How the file came to be the one.
  enum class Place : std::uint8_t { home, named };

  std::string path;
  Place place = Place::home;
  bool is_there = true;  // false: an empty one stands for the one that the home doesn't have
  ConfigTable top;
  std::vector<Fault> faults;  // of its syntax; what stands there is then not to be relied on

  // "werk.toml:12", for people; the whole path where the file was named.
  std::string at(std::uint32_t line) const;
};

inline constexpr std::uintmax_t kConfigBytesMax = 1024 * 1024;

// A fault of syntax ends the reading, but for a key that is given twice.
ConfigFile parse_config(std::string text, std::string path);
// Fails with `not_found` or `invalid_request` where there is no such file or it can't be read. A
// relative path starts at the current folder.
Result<ConfigFile> read_config(const std::filesystem::path& path);

// "a string", "a whole number", "a table".
std::string_view kind_of(const ConfigValue& value);
// The value as JSON; a time is null.
std::string json_of(const ConfigValue& value);

}  // namespace werk::app
