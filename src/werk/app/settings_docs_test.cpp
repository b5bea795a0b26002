// The documents against the table of options: docs/configuration.md names every setting with its
// flag, variable and key, and docs/werk.toml shows every key of the file.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <fstream>
#include <iterator>
#include <map>
#include <set>

#include "werk/app/request_defaults.hpp"
#include "werk/app/settings.hpp"

namespace werk::app {
namespace {

std::string read_document(const std::string& name) {
  std::ifstream file(std::string(WERK_DOCUMENTS) + "/" + name);
  EXPECT_TRUE(file.is_open()) << name;
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    lines.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return lines;
}

std::string cell_of(const std::string& row, std::size_t cell) {
  std::size_t begin = 0;
  for (std::size_t i = 0; i <= cell; ++i) begin = row.find('|', begin) + 1;
  return row.substr(begin, row.find('|', begin) - begin);
}

// What stands in backquotes in the nth cell of a row, up to its first blank.
std::string name_in(const std::string& row, std::size_t cell) {
  const std::string text = cell_of(row, cell);
  const std::size_t quote = text.find('`');
  if (quote == std::string::npos) return "";
  const std::string quoted = text.substr(quote + 1, text.find('`', quote + 1) - quote - 1);
  return quoted.substr(0, quoted.find(' '));
}

// Every row of a table of settings by its "flag variable key".
std::map<std::string, std::string> documented() {
  std::map<std::string, std::string> rows;
  bool in_table = false;
  for (const std::string& line : lines_of(read_document("configuration.md"))) {
    if (line.starts_with("| flag | variable | key | default |")) in_table = true;
    if (!line.starts_with('|')) in_table = false;
    if (!in_table || line.find("`") == std::string::npos) continue;
    const std::string name =
        fmt::format("{} {} {}", name_in(line, 0), name_in(line, 1), name_in(line, 2));
    EXPECT_TRUE(rows.emplace(name, line).second) << "twice: " << name;
  }
  return rows;
}

std::string row_name(const Option& option) {
  const std::string key = option.key == kNotInFile ? "" : key_of(option);
  return fmt::format("{} {} {}", option.flag, option.variable, key);
}

// A default as people write it ("300 s", "128 MiB", "off", "0: never") in the words of a value.
std::string plain(const Option& option, std::string text) {
  std::erase_if(text, [](char c) { return c == ' ' || c == '`'; });
  text = text.substr(0, text.find(':'));
  if (option.shape == Shape::flag) return text == "off" ? "false" : text;
  if (text.ends_with("MiB")) return fmt::to_string(std::stoull(text) << 20);
  const auto duration = parse_duration(text);
  return option.takes == "DURATION" && duration ? duration_text(*duration) : text;
}

TEST(Documents, TheTablesOfSettingsNameEveryOptionAndNothingElse) {
  auto rows = documented();
  for (const Option& option : options()) {
    EXPECT_EQ(rows.erase(row_name(option)), 1u)
        << "docs/configuration.md has no row for: " << row_name(option);
  }
  for (const auto& [name, row] : rows) ADD_FAILURE() << "this is no option: " << name;
}

TEST(Documents, TheDefaultsInTheTablesAreTheDefaults) {
  const auto rows = documented();
  std::size_t compared = 0;
  for (const Option& option : options()) {
    const std::string set = option.access.show(Settings{});
    const auto row = rows.find(row_name(option));
    // Of what isn't set the table says what happens instead.
    if (set.empty() || row == rows.end()) continue;
    EXPECT_EQ(plain(option, cell_of(row->second, 3)), set) << row->second;
    ++compared;
  }
  EXPECT_GT(compared, 10u);
}

TEST(Documents, WhatOneModelMayHaveIsNamed) {
  const std::string text = read_document("configuration.md");
  for (const Option& option : model_options())
    EXPECT_NE(text.find(fmt::format("| `{}` | ", key_of(option))), std::string::npos)
        << key_of(option);
  for (const std::string& name : request_default_names())
    EXPECT_NE(text.find(fmt::format("`{}`", name)), std::string::npos) << name;
  // The star of what a model may have of its own.
  for (const Option& option : options()) {
    const bool starred = text.find(fmt::format("| `{}` * |", key_of(option))) != std::string::npos;
    EXPECT_EQ(starred, option.access.set_of_model != nullptr) << key_of(option);
  }
}

// The sample with every setting that is commented out put to use.
std::string sample_in_use() {
  std::string text;
  for (std::string line : lines_of(read_document("werk.toml"))) {
    const bool setting =
        line.size() > 1 && line[0] == '#' &&
        (std::islower(static_cast<unsigned char>(line[1])) || line[1] == '[' || line[1] == '"');
    text += (setting ? line.substr(1) : line) + "\n";
  }
  return text;
}

std::set<std::string> keys_in(const ConfigTable& table) {
  std::set<std::string> keys;
  for (const ConfigEntry& entry : table) keys.insert(entry.key);
  return keys;
}

TEST(Documents, TheSampleFileShowsEveryKeyAndIsSound) {
  const Environment none = [](std::string_view) { return std::nullopt; };
  EXPECT_EQ(parse_config(read_document("werk.toml"), "werk.toml").faults.size(), 0u);
  ConfigFile file = parse_config(sample_in_use(), "docs/werk.toml");
  file.place = ConfigFile::Place::named;
  const auto settings = read_settings({}, none, file);
  ASSERT_TRUE(settings) << settings.error().message;
  for (const Fault& fault : settings->file.faults) {
    // The files that it names are examples.
    if (fault.message.find("names ") == std::string::npos) ADD_FAILURE() << fault.message;
  }
  const std::set<std::string> keys = keys_in(file.top);
  ASSERT_FALSE(settings->models.empty());
  std::set<std::string> of_model;
  for (const ConfigEntry& entry : file.top) {
    if (entry.key != "models") continue;
    for (const ConfigEntry& model : std::get<ConfigTable>(entry.value.held))
      of_model.merge(keys_in(std::get<ConfigTable>(model.value.held)));
  }
  for (const Option& option : options()) {
    if (option.key != kNotInFile) {
      EXPECT_TRUE(keys.contains(key_of(option))) << "docs/werk.toml lacks " << key_of(option);
    }
  }
  for (const Option* option : options_of_models()) {
    EXPECT_TRUE(of_model.contains(model_key_of(*option)))
        << "docs/werk.toml lacks a model's " << model_key_of(*option);
  }
  std::set<std::string> defaults;
  for (const RequestDefault& one : settings->models.front().defaults) defaults.insert(one.name);
  for (const std::string& name : request_default_names())
    EXPECT_TRUE(defaults.contains(name)) << "docs/werk.toml lacks a default for " << name;
}

}  // namespace
}  // namespace werk::app
