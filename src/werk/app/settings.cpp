#include "werk/app/settings.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "werk/app/settings_file.hpp"
#include "werk/model/home.hpp"

namespace werk::app {

namespace llama = engine::llama_server;

namespace {

// What a model has without a table of its own.
ModelSettings node_values(const Settings& settings, std::string_view id) {
  ModelSettings model;
  model.id = std::string(id);
  model.llama = settings.llama;
  model.backend = settings.backend;
  model.idle_timeout = settings.idle_timeout;
  return model;
}

// What one setting is to be filled with, and by whom.
struct Chosen {
  SettingSource source;
  std::string name;  // for errors
  std::vector<std::string> values;
};

class Resolver {
 public:
  Resolver(std::span<const GivenFlag> flags, const Environment& environment, Settings& settings)
      : flags_(flags),
        environment_(environment),
        settings_(settings),
        of_file_(read_file_settings(settings.file, environment("HOME"))) {}

  Status resolve() {
    for (const GivenFlag& given : flags_) {
      const bool known =
          std::ranges::any_of(options(), [&](const Option& one) { return one.flag == given.flag; });
      if (!known) return fail(ErrorCode::invalid_request, "unknown option " + given.flag);
    }
    settings_.remotes = of_file_.remotes;
    if (!settings_.remotes.empty()) {
      const SettingSource source{GivenBy::file, settings_.file.at(of_file_.remotes_line)};
      settings_.sources.emplace("remotes", source);
    }
    for (const Option& option : options()) {
      if (Status filled = fill(option); !filled) return filled;
    }
    if (Status sound = llama::check_options(settings_.llama); !sound) return sound;
    for (const FileModel& model : of_file_.models) add_model(model);
    add_aliases_of_models();
    std::ranges::stable_sort(settings_.file.faults, {}, &Fault::line);
    return {};
  }

 private:
  std::optional<Chosen> by_flag(const Option& option) const {
    if (option.flag.empty()) return std::nullopt;
    Chosen chosen{{GivenBy::flag, std::string(option.flag)}, std::string(option.flag), {}};
    for (const GivenFlag& given : flags_) {
      if (given.flag == option.flag) chosen.values.push_back(given.value);
    }
    if (chosen.values.empty()) return std::nullopt;
    return chosen;
  }

  std::optional<Chosen> by_variable(const Option& option) const {
    if (option.variable.empty()) return std::nullopt;
    const auto value = environment_(option.variable);
    // An empty variable is an unset one, except where emptiness would silently open the node.
    if (!value || (value->empty() && option.variable != "WERK_API_KEY")) return std::nullopt;
    const std::string name(option.variable);
    return Chosen{{GivenBy::variable, name}, name, {*value}};
  }

  std::optional<Chosen> by_file(const Option& option) const {
    const std::string key = key_of(option);
    const auto found = of_file_.values.find(key);
    if (option.key == kNotInFile || found == of_file_.values.end()) return std::nullopt;
    const std::string at = settings_.file.at(found->second.line);
    return Chosen{{GivenBy::file, at}, fmt::format("{}: {}", at, key), found->second.values};
  }

  Status fill(const Option& option) {
    std::optional<Chosen> file = by_file(option);
    std::optional<Chosen> chosen = by_flag(option);
    if (!chosen) chosen = by_variable(option);
    if (chosen) {
      if (Status set = set_all(option, *chosen); !set) return set;
    }
    // Aliases are given one by one: those of the file stand behind those of the command line.
    if (file && (!chosen || option.key == "aliases")) {
      if (Status set = set_all(option, *file); !set) return set;
    }
    if (!chosen) chosen = std::move(file);
    if (chosen && option.key == "llama_server" && chosen->source.by == GivenBy::file)
      settings_.executables.any_mode_name = chosen->name;
    if (chosen) settings_.sources.insert_or_assign(key_of(option), chosen->source);
    return {};
  }

  Status set_all(const Option& option, const Chosen& chosen) {
    const std::size_t warned = settings_.warnings.size();
    for (const std::string& value : chosen.values) {
      Status set = option.access.set(settings_, value);
      if (!set) {
        set.error().message = fmt::format("{} {}", chosen.name, set.error().message);
        return set;
      }
    }
    for (std::size_t i = warned; i < settings_.warnings.size(); ++i)
      settings_.warnings[i] = fmt::format("{} {}", chosen.name, settings_.warnings[i]);
    return {};
  }

  // A flag or a variable is for this run and wins over what the model has of its own.
  bool may_differ(const Option& option) const {
    const auto source = settings_.sources.find(key_of(option));
    return source == settings_.sources.end() || source->second.by < GivenBy::variable;
  }

  void add_model(const FileModel& of_file) {
    ModelSettings model = node_values(settings_, of_file.id);
    model.line = of_file.line;
    model.defaults = of_file.defaults;
    for (const Option* option : options_of_models()) {
      const auto found = of_file.values.find(model_key_of(*option));
      if (found == of_file.values.end() || !may_differ(*option)) continue;
      for (const std::string& value : found->second.values) {
        // Tried when the file was read.
        const Status set = option->access.set_of_model(model, value);
        if (!set) settings_.file.faults.push_back({found->second.line, set.error().message});
      }
      const SettingSource source{GivenBy::file, settings_.file.at(found->second.line)};
      model.sources.insert_or_assign(found->first, source);
    }
    settings_.models.push_back(std::move(model));
  }

  // A name may lead to one model only, as far as the file goes.
  void add_aliases_of_models() {
    const auto given = settings_.sources.find("aliases");
    const bool by_flag = given != settings_.sources.end() && given->second.by == GivenBy::flag;
    for (const ModelSettings& model : settings_.models) {
      for (const std::string& name : model.aliases) {
        const auto taken = std::ranges::find(settings_.aliases, name, &routing::AliasRule::pattern);
        if (taken == settings_.aliases.end()) {
          settings_.aliases.push_back({name, model.id});
          settings_.sources.try_emplace("aliases", model.sources.at("aliases"));
        } else if (taken->model != model.id && !by_flag) {
          const auto of_file = std::ranges::find(of_file_.models, model.id, &FileModel::id);
          settings_.file.faults.push_back(
              {of_file->values.at("aliases").line,
               fmt::format("\"{}\" is an alias of {} and of {}; it can lead to one of them", name,
                           taken->model, model.id)});
        }
      }
    }
  }

  std::span<const GivenFlag> flags_;
  const Environment& environment_;
  Settings& settings_;
  FileSettings of_file_;
};

std::optional<std::string> last_given(std::span<const GivenFlag> flags, std::string_view flag) {
  std::optional<std::string> value;
  for (const GivenFlag& given : flags) {
    if (given.flag == flag) value = given.value;
  }
  return value;
}

// The file of the home, if there is one; an empty tree otherwise.
Result<ConfigFile> home_file(std::span<const GivenFlag> flags, const Environment& environment) {
  const auto home_variables = [&](const std::string& name) -> std::optional<std::string> {
    const auto flag = name == "WERK_HOME" ? last_given(flags, "--model-home") : std::nullopt;
    return flag ? flag : environment(name);
  };
  ConfigFile file;
  file.is_there = false;
  std::error_code unknown;
  const auto home = model::home_folder(home_variables, std::filesystem::current_path(unknown));
  if (!home) return file;  // whoever needs the home says so
  const std::filesystem::path path = *home / "werk.toml";
  if (std::filesystem::exists(path, unknown)) return read_config(path);
  file.path = path.string();
  return file;
}

}  // namespace

Result<Settings> read_settings(std::span<const GivenFlag> flags, const Environment& environment,
                               ConfigFile file) {
  Settings settings;
  settings.file = std::move(file);
  Resolver resolver(flags, environment, settings);
  if (Status resolved = resolver.resolve(); !resolved) return pass_on(resolved);
  return settings;
}

Result<Settings> load_settings(std::span<const GivenFlag> flags, const Environment& environment) {
  auto named = last_given(flags, "--config");
  if (!named) named = environment("WERK_CONFIG");
  if (!named || named->empty()) {
    Result<ConfigFile> file = home_file(flags, environment);
    if (!file) return pass_on(file);
    return read_settings(flags, environment, std::move(*file));
  }
  Result<ConfigFile> file = read_config(*named);
  if (!file) return pass_on(file);
  file->place = ConfigFile::Place::named;
  return read_settings(flags, environment, std::move(*file));
}

std::string fault_text(const ConfigFile& file, const Fault& fault) {
  if (fault.line == 0) return fmt::format("{}: {}", file.path, fault.message);
  return fmt::format("{}:{}: {}", file.path, fault.line, fault.message);
}

ModelSettings settings_of_model(const Settings& settings, std::string_view id) {
  const auto found = std::ranges::find(settings.models, id, &ModelSettings::id);
  if (found != settings.models.end()) return *found;
  return node_values(settings, id);
}

}  // namespace werk::app
