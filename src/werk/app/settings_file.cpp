#include "werk/app/settings_file.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "werk/app/request_defaults.hpp"
#include "werk/base/text.hpp"

namespace werk::app {
namespace {

// The type that a setting has in the file.
enum class Form : std::uint8_t {
  text,
  number,
  number_or_text,
  duration,  // a text, or a number of seconds
  mode,      // a word; true and false are "on" and "off"
  truth,
  words,  // as a shell would split them, or a list
  list,
  aliases,  // a table of names and models
  path,
  program  // a path, or a name to be found in PATH
};

Form form_of(const Option& option) {
  if (option.shape == Shape::flag) return Form::truth;
  if (option.takes == "NAME=MODEL") return Form::aliases;
  if (option.shape == Shape::repeated) return Form::list;
  if (option.takes == "N") return Form::number;
  if (option.takes == "LAYERS") return Form::number_or_text;
  if (option.takes == "DURATION") return Form::duration;
  if (option.takes == "MODE") return Form::mode;
  if (option.takes == "WORDS") return Form::words;
  if (option.takes == "PROGRAM") return Form::program;
  if (option.takes == "FILE" || option.takes == "DIR") return Form::path;
  return Form::text;
}

using Values = Result<std::vector<std::string>>;

Values wrong_type(std::string_view wanted, const ConfigValue& value) {
  return fail(ErrorCode::invalid_request, fmt::format("takes {}, not {}", wanted, kind_of(value)));
}

// A value of the kinds that a single word can come from.
std::optional<std::string> word_of(const ConfigValue& value, Form form) {
  if (const auto* text = std::get_if<std::string>(&value.held)) {
    return form == Form::number ? std::nullopt : std::optional(*text);
  }
  const bool takes_number =
      form == Form::number || form == Form::number_or_text || form == Form::duration;
  const auto* whole = std::get_if<std::int64_t>(&value.held);
  if (whole != nullptr && takes_number) return fmt::to_string(*whole);
  const auto* number = std::get_if<double>(&value.held);
  if (number != nullptr && form == Form::duration) return fmt::format("{}", *number);
  const auto* truth = std::get_if<bool>(&value.held);
  if (truth != nullptr && form == Form::mode) return *truth ? "on" : "off";
  return std::nullopt;
}

std::string_view wanted_in(Form form) {
  switch (form) {
    case Form::number: return "a whole number";
    case Form::number_or_text: return "a whole number or a string";
    case Form::duration: return "a duration such as \"30s\"";
    case Form::truth: return "true or false";
    case Form::words: return "a string or a list of strings";
    case Form::list: return "a list of strings";
    case Form::aliases: return "a table of NAME = \"MODEL\"";
    default: return "a string";
  }
}

Values strings_in(const ConfigValue& value, Form form) {
  const auto* list = std::get_if<ConfigList>(&value.held);
  if (list == nullptr) return wrong_type(wanted_in(form), value);
  std::vector<std::string> strings;
  for (const ConfigValue& item : *list) {
    const auto* text = std::get_if<std::string>(&item.held);
    if (text == nullptr) {
      return fail(ErrorCode::invalid_request,
                  fmt::format("takes {}; an element is {}", wanted_in(form), kind_of(item)));
    }
    strings.push_back(*text);
  }
  return strings;
}

Values alias_rules(const ConfigValue& value) {
  const auto* table = std::get_if<ConfigTable>(&value.held);
  if (table == nullptr) return wrong_type(wanted_in(Form::aliases), value);
  std::vector<std::string> rules;
  for (const ConfigEntry& entry : *table) {
    const auto* model = std::get_if<std::string>(&entry.value.held);
    if (model == nullptr) {
      return fail(ErrorCode::invalid_request,
                  fmt::format("takes a model's name for \"{}\", not {}; settings of the node "
                              "stand above the first [table]",
                              printable(entry.key), kind_of(entry.value)));
    }
    rules.push_back(fmt::format("{}={}", entry.key, *model));
  }
  return rules;
}

class Reader {
 public:
  Reader(ConfigFile& file, const std::optional<std::string>& user_home)
      : file_(file),
        folder_(std::filesystem::path(file.path).parent_path().string()),
        user_home_(user_home) {}

  FileSettings read() {
    FileSettings settings;
    for (const ConfigEntry& entry : file_.top) read_top(entry, settings);
    std::ranges::stable_sort(file_.faults, {}, &Fault::line);
    return settings;
  }

 private:
  void fault(std::uint32_t line, std::string message) {
    file_.faults.push_back({line, std::move(message)});
  }

  void read_top(const ConfigEntry& entry, FileSettings& settings) {
    if (entry.key == "models") return read_models(entry, settings);
    if (entry.key == "remotes") {
      settings.remotes = read_remotes(entry, file_);
      settings.remotes_line = entry.line;
      return;
    }
    const auto option = std::ranges::find_if(options(), [&](const Option& one) {
      return one.key != kNotInFile && key_of(one) == entry.key;
    });
    if (option == options().end()) return unknown_top(entry);
    if (entry.key == "model_home" && file_.place == ConfigFile::Place::home) {
      return fault(entry.line,
                   "model_home can't stand here, since this file was found in the home; "
                   "--model-home, WERK_HOME or a file named by --config may set it");
    }
    if (entry.key == "model" && std::holds_alternative<ConfigTable>(entry.value.held)) {
      return fault(entry.line,
                   "model takes the default model's id; did you mean a table [models.\"ID\"]?");
    }
    const auto try_value = [&](const std::string& value) {
      Settings scratch;
      return option->access.set(scratch, value);
    };
    if (auto value = read_value(entry, form_of(*option), entry.key, try_value))
      settings.values.insert_or_assign(entry.key, std::move(*value));
  }

  void read_models(const ConfigEntry& models, FileSettings& settings) {
    const auto* table = std::get_if<ConfigTable>(&models.value.held);
    if (table == nullptr) {
      return fault(models.line, fmt::format("models takes tables [models.\"ID\"], not {}",
                                            kind_of(models.value)));
    }
    for (const ConfigEntry& entry : *table) {
      const auto* of_model = std::get_if<ConfigTable>(&entry.value.held);
      if (of_model == nullptr || entry.key.empty()) {
        fault(entry.line, fmt::format("models.\"{}\" is {}; a model's settings are a table "
                                      "[models.\"ID\"]",
                                      printable(entry.key), kind_of(entry.value)));
        continue;
      }
      FileModel model;
      model.id = entry.key;
      model.line = entry.line;
      for (const ConfigEntry& one : *of_model) read_of_model(one, model);
      settings.models.push_back(std::move(model));
    }
  }

  void read_of_model(const ConfigEntry& entry, FileModel& model) {
    if (entry.key == "defaults") return read_defaults(entry, model);
    const auto known = options_of_models();
    const auto option = std::ranges::find_if(
        known, [&](const Option* one) { return model_key_of(*one) == entry.key; });
    if (option == known.end()) return unknown_of_model(entry, model.id);
    const auto try_value = [&](const std::string& value) {
      ModelSettings scratch;
      return (*option)->access.set_of_model(scratch, value);
    };
    const std::string name = fmt::format("models.\"{}\".{}", model.id, entry.key);
    if (auto value = read_value(entry, form_of(**option), name, try_value))
      model.values.insert_or_assign(entry.key, std::move(*value));
  }

  void read_defaults(const ConfigEntry& defaults, FileModel& model) {
    const std::string name = fmt::format("models.\"{}\".defaults", printable(model.id));
    const auto* table = std::get_if<ConfigTable>(&defaults.value.held);
    if (table == nullptr) {
      return fault(defaults.line,
                   fmt::format("{} takes a table, not {}", name, kind_of(defaults.value)));
    }
    for (const ConfigEntry& entry : *table) {
      const std::string member = fmt::format("{}.{}", name, printable(entry.key));
      Result<std::string> json = request_default(entry.key, entry.value);
      if (json) {
        const SettingSource source{GivenBy::file, file_.at(entry.line)};
        model.defaults.push_back({entry.key, std::move(*json), source});
      } else if (json.error().code == ErrorCode::not_found) {
        unknown(entry, member, request_default_names());
      } else {
        fault(entry.line, fmt::format("{} {}", member, json.error().message));
      }
    }
  }

  template <class Try>
  std::optional<FileValue> read_value(const ConfigEntry& entry, Form form, const std::string& name,
                                      const Try& try_value) {
    Values values = values_of(entry.value, form);
    Status sound;
    for (std::size_t i = 0; values && sound && i < values->size(); ++i)
      sound = try_value((*values)[i]);
    const std::string problem = !values  ? values.error().message
                                : !sound ? sound.error().message
                                         : std::string();
    if (!problem.empty()) {
      fault(entry.line, fmt::format("{} {}", printable(name), problem));
      return std::nullopt;
    }
    return FileValue{std::move(*values), entry.line};
  }

  Values values_of(const ConfigValue& value, Form form) const {
    if (form == Form::aliases) return alias_rules(value);
    if (form == Form::list) return strings_in(value, form);
    const bool is_list = std::holds_alternative<ConfigList>(value.held);
    if (form == Form::words && is_list) {
      const Values words = strings_in(value, form);
      if (!words) return fail(words.error());
      return std::vector<std::string>{shell_line(*words)};
    }
    if (form == Form::truth) {
      const auto* truth = std::get_if<bool>(&value.held);
      if (truth == nullptr) return wrong_type(wanted_in(form), value);
      return *truth ? std::vector<std::string>{""} : std::vector<std::string>{};
    }
    auto word = word_of(value, form);
    if (!word) return wrong_type(wanted_in(form), value);
    if (form != Form::path && form != Form::program) return std::vector<std::string>{*word};
    if (word->empty()) return fail(ErrorCode::invalid_request, "takes a path, not \"\"");
    const BareName bare = form == Form::program ? BareName::keep : BareName::is_path;
    return std::vector<std::string>{placed_path(*word, folder_, user_home_, bare)};
  }

  void unknown_top(const ConfigEntry& entry) {
    if (entry.key == "api_key" || entry.key == "api_keys") {
      return fault(entry.line, fmt::format("{} can't stand here, where others may read it: set "
                                           "WERK_API_KEY, or name a file of mode 0600 by "
                                           "api_keys_file",
                                           entry.key));
    }
    std::vector<std::string> known = {"models"};
    for (const Option& option : options()) {
      if (option.key != kNotInFile) known.push_back(key_of(option));
    }
    const bool is_models =
        entry.key == "defaults" || std::ranges::any_of(options_of_models(), [&](const Option* one) {
          return model_key_of(*one) == entry.key;
        });
    if (is_models) {
      return fault(
          entry.line,
          fmt::format("{} is a setting of one model; it stands in [models.\"ID\"]", entry.key));
    }
    unknown(entry, printable(entry.key), known);
  }

  void unknown_of_model(const ConfigEntry& entry, const std::string& id) {
    std::vector<std::string> known = {"defaults"};
    for (const Option* option : options_of_models()) {
      known.push_back(model_key_of(*option));
      if (key_of(*option) == entry.key) return renamed(entry, id, known.back());
    }
    bool is_nodes = false;
    for (const Option& option : options()) {
      is_nodes = is_nodes || (option.key != kNotInFile && key_of(option) == entry.key &&
                              option.access.set_of_model == nullptr);
    }
    const std::string name = fmt::format("models.\"{}\".{}", printable(id), printable(entry.key));
    if (is_nodes) {
      return fault(entry.line, fmt::format("{}: {} is a setting of the node; it stands above the "
                                           "first [table]",
                                           name, entry.key));
    }
    if (std::holds_alternative<ConfigTable>(entry.value.held)) {
      return fault(entry.line, fmt::format("{} is no setting; an id with a dot or a slash stands "
                                           "in quotes, as [models.\"{}.{}\"]",
                                           name, printable(id), printable(entry.key)));
    }
    unknown(entry, name, known);
  }

  void renamed(const ConfigEntry& entry, const std::string& id, const std::string& key) {
    fault(entry.line, fmt::format("models.\"{}\".{} is called {} here", printable(id),
                                  printable(entry.key), key));
  }

  void unknown(const ConfigEntry& entry, const std::string& name,
               const std::vector<std::string>& known) {
    std::string message = fmt::format("{} is no setting", name.empty() ? "\"\"" : name);
    const auto near = near_names(entry.key, known, 1);
    if (!near.empty()) message += fmt::format("; did you mean {}?", near.front());
    fault(entry.line, std::move(message));
  }

  ConfigFile& file_;
  std::string folder_;
  const std::optional<std::string>& user_home_;
};

}  // namespace

FileSettings read_file_settings(ConfigFile& file, const std::optional<std::string>& user_home) {
  return Reader(file, user_home).read();
}

}  // namespace werk::app
