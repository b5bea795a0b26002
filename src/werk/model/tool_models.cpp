#include "werk/model/tool_models.hpp"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <boost/json/parse.hpp>
#include <map>

#include "werk/base/text.hpp"
#include "werk/model/known_digests.hpp"
#include "werk/model/tool_reading.hpp"

namespace werk::model {
namespace {

namespace fs = std::filesystem;
namespace json = boost::json;

constexpr std::size_t kTextBytesMax = 1024 * 1024;
constexpr std::size_t kEntriesMax = 10'000;

// The first variable that holds an absolute path.
class Places {
 public:
  explicit Places(const Environment& environment) : environment_(environment) {}

  fs::path variable(const char* name) const {
    fs::path value = environment_(name).value_or("");
    return value.is_absolute() ? value : fs::path();
  }
  fs::path user(const fs::path& below) const {
    const fs::path home = variable("HOME");
    return home.empty() ? home : home / below;
  }
  fs::path cache(const fs::path& below) const {
    const fs::path named = variable("XDG_CACHE_HOME");
    return named.empty() ? user(fs::path(".cache") / below) : named / below;
  }

 private:
  const Environment& environment_;
};

void add(std::vector<fs::path>& folders, const fs::path& folder) {
  if (folder.empty()) return;
  const fs::path normal = folder.lexically_normal();
  if (std::find(folders.begin(), folders.end(), normal) == folders.end()) folders.push_back(normal);
}

// The same for two names of one file, and for two files of which the same digest is known.
std::string content_key(const fs::path& path) {
  if (auto digest = digest_in_name(path)) return *digest;
  struct stat facts {};
  if (::stat(path.c_str(), &facts) != 0) return path.string();
  return fmt::format("{}:{}", facts.st_dev, facts.st_ino);
}

std::string content_key(const ImportPlan& plan) {
  std::string key;
  for (const PlannedFile& file : plan.files) key += content_key(file.path) + " ";
  return key;
}

void add_name(ToolModel& model, const std::string& name) {
  auto& aliases = model.aliases;
  const bool known =
      name == model.name || std::find(aliases.begin(), aliases.end(), name) != aliases.end();
  if (!known) aliases.push_back(name);
}

void merge_equal(std::vector<ToolModel>& models) {
  std::vector<ToolModel> merged;
  std::map<std::string, std::size_t> first;  // by content
  for (ToolModel& model : models) {
    if (!model.plan) {
      merged.push_back(std::move(model));
      continue;
    }
    const auto [place, is_new] = first.emplace(content_key(*model.plan), merged.size());
    if (is_new) {
      merged.push_back(std::move(model));
      continue;
    }
    ToolModel& same = merged[place->second];
    add_name(same, model.name);
    for (const std::string& alias : model.aliases) add_name(same, alias);
  }
  models = std::move(merged);
}

}  // namespace

ToolFolders tool_folders(const Environment& environment) {
  const Places places(environment);
  ToolFolders folders;
  add(folders.ollama, places.variable("OLLAMA_MODELS"));
  if (folders.ollama.empty()) {
    add(folders.ollama, places.user(".ollama/models"));
    // Of the service that Ollama's installer and Linux distributions set up.
    add(folders.ollama, "/usr/share/ollama/.ollama/models");
    add(folders.ollama, "/var/lib/ollama/models");
    add(folders.ollama, "/var/lib/ollama/.ollama/models");
  }
  add(folders.lm_studio, places.user(".lmstudio/models"));
  add(folders.lm_studio, places.user(".cache/lm-studio/models"));
  for (const char* name : {"HF_HUB_CACHE", "HUGGINGFACE_HUB_CACHE"}) {
    if (folders.hub.empty()) add(folders.hub, places.variable(name));
  }
  const fs::path hub_home = places.variable("HF_HOME");
  if (folders.hub.empty() && !hub_home.empty()) add(folders.hub, hub_home / "hub");
  if (folders.hub.empty()) add(folders.hub, places.cache("huggingface/hub"));
  add(folders.llama_cpp, places.variable("LLAMA_CACHE"));
  if (folders.llama_cpp.empty()) add(folders.llama_cpp, places.cache("llama.cpp"));
  return folders;
}

ToolScan scan_tools(const ToolFolders& folders) {
  ToolScan scan;
  const auto read = [&scan](const std::vector<fs::path>& places, auto reader) {
    const auto begin = static_cast<std::ptrdiff_t>(scan.models.size());
    for (const fs::path& folder : places) reader(folder, scan);
    std::sort(scan.models.begin() + begin, scan.models.end(),
              [](const ToolModel& a, const ToolModel& b) { return a.name < b.name; });
  };
  read(folders.ollama, read_ollama);
  read(folders.lm_studio, read_lm_studio);
  read(folders.hub, read_hub);
  read(folders.llama_cpp, read_llama_cpp);
  merge_equal(scan.models);
  return scan;
}

std::vector<fs::path> entries_of(const fs::path& folder, std::string_view tool, ToolScan& scan) {
  std::vector<fs::path> entries;
  std::error_code error;
  fs::directory_iterator entry(folder, error);
  for (const fs::directory_iterator end; !error && entry != end; entry.increment(error)) {
    entries.push_back(entry->path());
    if (entries.size() < kEntriesMax) continue;
    scan.notes.push_back(fmt::format("{} holds more than {} entries; the rest is not looked at.",
                                     folder.string(), kEntriesMax));
    break;
  }
  const bool missing =
      error == std::errc::no_such_file_or_directory || error == std::errc::not_a_directory;
  if (error && !missing) {
    scan.notes.push_back(
        fmt::format("The models of {} in {} can't be seen: {}. Run this as a user "
                    "who may read them.",
                    tool, folder.string(), error.message()));
  }
  std::sort(entries.begin(), entries.end());
  return entries;
}

std::optional<json::object> read_object(const fs::path& path) {
  const auto source = FileSource::open(path);
  if (!source || (*source)->size_bytes() > kTextBytesMax) return std::nullopt;
  std::string text(static_cast<std::size_t>((*source)->size_bytes()), '\0');
  const Result<std::size_t> count = (*source)->read_at(0, text);
  if (!count) return std::nullopt;
  boost::system::error_code error;
  json::value value = json::parse(std::string_view(text).substr(0, *count), error);
  if (error || !value.is_object()) return std::nullopt;
  return std::move(value.get_object());
}

std::string text_in(const json::object& object, std::string_view member) {
  const json::value* value = object.if_contains(member);
  const json::string* text = value ? value->if_string() : nullptr;
  return text ? std::string(*text) : std::string();
}

ToolModel planned_model(std::string_view tool, std::string name, const fs::path& path,
                        ProjectorRule rule, const std::optional<fs::path>& projector) {
  ToolModel model{std::string(tool), std::move(name), {}, path, std::nullopt, {}};
  Result<ImportPlan> plan = plan_import(path, rule, projector);
  if (plan) {
    model.plan = std::move(*plan);
    return model;
  }
  return unusable_model(tool, std::move(model.name), path, std::move(plan.error().message));
}

ToolModel unusable_model(std::string_view tool, std::string name, const fs::path& path,
                         std::string reason) {
  // The path is told beside it.
  const std::string prefix = path.string() + ": ";
  if (reason.starts_with(prefix)) reason.erase(0, prefix.size());
  return {std::string(tool), std::move(name), {}, path, std::nullopt, std::move(reason)};
}

std::string other_weights(const std::vector<fs::path>& files) {
  for (const fs::path& file : files) {
    const std::string ending = to_lower(file.extension().string());
    if (ending == ".safetensors" || ending == ".bin" || ending == ".pt" || ending == ".pth" ||
        ending == ".onnx") {
      return fmt::format("It is no GGUF ({}).", ending.substr(1));
    }
  }
  return {};
}

}  // namespace werk::model
