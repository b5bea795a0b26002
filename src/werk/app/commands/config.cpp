#include "werk/app/commands/config.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>
#include <charconv>
#include <cstdio>

#include "werk/app/commands/rows.hpp"
#include "werk/base/text.hpp"
#include "werk/engine/masker.hpp"
#include "werk/process/program.hpp"

namespace werk::app {

namespace json = boost::json;

namespace {

// One line of the list.
struct Shown {
  std::string key;
  std::string value;
  SettingSource source;
  const Option* option = nullptr;  // null: the value is JSON
};

std::string safe_value(const Option& option, std::string value) {
  if (option.takes != "WORDS") return value;
  const auto words = shell_words(value);
  return words ? shell_line(engine::without_secrets(*words)) : "***";
}

SettingSource source_in(const Sources& sources, const std::string& key) {
  const auto found = sources.find(key);
  return found == sources.end() ? SettingSource{} : found->second;
}

std::vector<Shown> shown_of(const Settings& settings) {
  std::vector<Shown> all;
  for (const Option& option : options()) {
    if (option.access.show == nullptr) continue;
    const std::string key = key_of(option);
    const SettingSource source = source_in(settings.sources, key);
    all.push_back({key, safe_value(option, option.access.show(settings)), source, &option});
  }
  return all;
}

// What the model has of its own; the rest is the node's.
std::vector<Shown> shown_of(const ModelSettings& model) {
  std::vector<Shown> all;
  for (const Option* option : options_of_models()) {
    const std::string key = model_key_of(*option);
    if (model.sources.count(key) == 0) continue;
    all.push_back({key, safe_value(*option, option->access.show_of_model(model)),
                   source_in(model.sources, key), option});
  }
  for (const RequestDefault& one : model.defaults)
    all.push_back({"defaults." + one.name, one.json, one.source, nullptr});
  return all;
}

json::value value_in_json(const Shown& shown) {
  if (shown.option == nullptr) return json::parse(shown.value);
  const Option& option = *shown.option;
  if (option.shape == Shape::repeated) {
    json::array items;
    for (std::size_t begin = 0; begin < shown.value.size();) {
      const std::size_t end = std::min(shown.value.find('\n', begin), shown.value.size());
      items.emplace_back(shown.value.substr(begin, end - begin));
      begin = end + 1;
    }
    return items;
  }
  if (option.shape == Shape::flag) return json::value(shown.value == "true");
  if (shown.value.empty()) return json::value(nullptr);
  if (option.takes == "N") {
    std::uint64_t number = 0;
    std::from_chars(shown.value.data(), shown.value.data() + shown.value.size(), number);
    return json::value(number);
  }
  return json::value(shown.value);
}

json::object in_json(const std::vector<Shown>& all) {
  json::object object;
  for (const Shown& shown : all) {
    json::object entry;
    entry["value"] = value_in_json(shown);
    entry["source"] = shown.source.text;
    object[shown.key] = std::move(entry);
  }
  return object;
}

int complain(std::string_view message) {
  fmt::print(stderr, "werk: {}\n", message);
  return 1;
}

Result<Settings> checked(const CommandLine& line) {
  if (line.subject.empty()) return load_settings(line.flags, process::own_variable);
  Result<ConfigFile> file = read_config(line.subject);
  if (!file) return pass_on(file);
  file->place = ConfigFile::Place::named;
  const auto only_home = [](std::string_view name) {
    return name == "HOME" ? process::own_variable(name) : std::nullopt;
  };
  return read_settings({}, only_home, std::move(*file));
}

}  // namespace

std::string config_table(const Settings& settings) {
  const std::vector<Shown> all = shown_of(settings);
  RowWidths widths;
  for (const Shown& shown : all) widths.name = std::max(widths.name, shown.key.size());
  const ConfigFile& file = settings.file;
  std::string out =
      fmt::format("settings file: {}{}\n\n", file.path, file.is_there ? "" : " (there is none)");
  const auto append = [&](const Shown& shown) {
    append_row(out, widths, shown.key, shown.value.empty() ? "-" : shown.value, shown.source.text);
  };
  for (const Shown& shown : all) append(shown);
  for (const ModelSettings& model : settings.models) {
    out += fmt::format("\n[models.\"{}\"]\n", printable(model.id));
    for (const Shown& shown : shown_of(model)) append(shown);
  }
  return out;
}

std::string config_json(const Settings& settings) {
  json::object all;
  all["file"] = settings.file.is_there ? json::value(settings.file.path) : json::value(nullptr);
  all["settings"] = in_json(shown_of(settings));
  json::object models;
  for (const ModelSettings& model : settings.models) models[model.id] = in_json(shown_of(model));
  all["models"] = std::move(models);
  return json::serialize(all);
}

int config_command(const CommandLine& line, const Settings& settings) {
  for (const std::string& warning : settings.warnings) complain(warning);
  fmt::print("{}", line.json == Json::yes ? config_json(settings) + "\n" : config_table(settings));
  return 0;
}

int config_check_command(const CommandLine& line) {
  const Result<Settings> settings = checked(line);
  if (!settings) return complain(settings.error().message);
  const ConfigFile& file = settings->file;
  if (!file.is_there) return complain(fmt::format("there is no settings file {}", file.path));
  for (const std::string& warning : settings->warnings) complain(warning);
  for (const Fault& fault : file.faults) complain(fault_text(file, fault));
  if (!file.faults.empty()) return 1;
  fmt::print("{} is sound\n", file.path);
  return 0;
}

}  // namespace werk::app
