// The node's settings as plain values, and the one table of options that describes and fills them:
// flag, environment variable, key of the settings file, what it means, how it is read. A flag wins
// over its variable, a variable over the file (there [models."ID"] over the top level), the file
// over the default; where each value came from is kept. Errors name what held the value and what it
// takes. Pure, but for the files that settings name.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "werk/app/config_file.hpp"
#include "werk/app/remote_settings.hpp"
#include "werk/app/setting_values.hpp"
#include "werk/base/log.hpp"
#include "werk/base/result.hpp"
#include "werk/engine/llama_server/options.hpp"
#include "werk/gateway/messages_request.hpp"
#include "werk/routing/router.hpp"

namespace werk::app {

enum class Permission : std::uint8_t { no, yes };

// Where a value came from; the order is that of precedence.
enum class GivenBy : std::uint8_t { nobody, file, variable, flag };

struct SettingSource {
  GivenBy by = GivenBy::nobody;
  std::string text = "default";  // "werk.toml:12", "WERK_LLAMA_CTX", "--ctx-size"
};

// Of each setting by the key of the settings file.
using Sources = std::map<std::string, SettingSource, std::less<>>;

// A member of requests that gets this value where a client sent none.
struct RequestDefault {
  std::string name;
  std::string json;
  SettingSource source;
};

// Of one model of its own: a table [models."ID"].
struct ModelSettings {
  std::string id;
  std::uint32_t line = 0;
  // The node's, with the model's own over them where no flag or variable says otherwise.
  engine::llama_server::LlamaServerOptions llama;
  std::string backend;
  std::chrono::milliseconds idle_timeout{0};
  Permission pinned = Permission::no;
  std::vector<std::string> aliases;
  std::vector<RequestDefault> defaults;
  Sources sources;  // of what is the model's own
};

struct Settings {
  std::optional<std::string> home;    // --model-home; else model::home_folder decides
  std::optional<std::string> config;  // --config; else werk.toml in the home
  std::string host = "127.0.0.1";
  std::uint16_t port = 11434;
  std::optional<std::string> model;
  std::string backend = "auto";
  engine::llama_server::LlamaServerOptions llama;
  engine::llama_server::NamedExecutables executables;
  std::vector<std::string> keys;
  std::optional<std::string> key_file;
  Permission unauthenticated = Permission::no;
  std::vector<std::string> allowed_hosts;
  std::vector<routing::AliasRule> aliases;
  gateway::PromptEdits prompt_edits = gateway::PromptEdits::apply;
  std::uint64_t body_bytes_max = std::uint64_t{128} << 20;
  std::size_t max_resident = 0;
  std::optional<std::size_t> active_models;
  std::optional<std::chrono::milliseconds> capacity_wait;
  std::chrono::milliseconds early_headers{0};  // zero: never
  std::chrono::milliseconds start_timeout{300'000};
  std::chrono::milliseconds silence_timeout{600'000};
  std::chrono::milliseconds drain_timeout{30'000};
  std::chrono::milliseconds idle_timeout{0};  // zero: never
  log::Level log_level = log::Level::info;
  // The interpreters of the engines that run in workers, and what they compute with.
  std::optional<std::string> onnx_genai_python;
  std::optional<std::string> onnx_runtime_python;  // the older name of the same
  std::optional<std::string> transformers_python;
  std::optional<std::string> device;
  std::optional<std::string> dtype;
  std::chrono::milliseconds worker_cancel_limit{5000};
  // How many models each of the engines that run inside a worker keeps.
  std::size_t onnx_genai_models = 1;
  std::size_t transformers_models = 1;
  std::size_t burn_models = 1;
  // vLLM: the python whose environment holds it, further words, how long a start may take, a file
  // for its output.
  std::optional<std::string> vllm_python;
  std::vector<std::string> vllm_arguments;
  std::uint32_t vllm_health_timeout_seconds = 300;
  std::optional<std::string> vllm_log;
  // A vLLM of somebody else's in the place of one of our own.
  std::optional<std::string> vllm_host;
  std::optional<std::uint16_t> vllm_port;
  std::optional<std::string> vllm_model;
  Permission persistence = Permission::no;  // prefix caching is asked for where it can be

  std::vector<ModelSettings> models;  // in the file's order
  std::vector<RemoteEntry> remotes;   // likewise; then those of the command line
  Sources sources;
  ConfigFile file;  // what was read; faults of its keys and values are among its faults
  std::vector<std::string> warnings;
};

// How an option stands on the command line.
enum class Shape : std::uint8_t { value, repeated, flag, variable_only };

// How a setting is filled and how its value reads. The last two are there where a model may have
// one of its own.
struct Access {
  Status (*set)(Settings& settings, const std::string& value) = nullptr;
  // As `set` would take it; empty: not set. Of a list the elements, one a line.
  std::string (*show)(const Settings& settings) = nullptr;
  Status (*set_of_model)(ModelSettings& model, const std::string& value) = nullptr;
  std::string (*show_of_model)(const ModelSettings& model) = nullptr;
};

struct Option {
  std::string_view flag;      // "--port"; empty with variable_only
  std::string_view variable;  // or empty
  std::string_view takes;     // "N", "DURATION"; empty for a flag. Decides the type in the file
  std::string_view help;
  Shape shape = Shape::value;
  Access access;
  // In the settings file; empty: the flag without dashes, `-` as `_`.
  std::string_view key = {};
};

// What stands as an option's key when the file can't hold it.
inline constexpr std::string_view kNotInFile = "-";

// In the order in which --help shows them.
std::span<const Option> options();
// What stands only in [models."ID"]: without flag and variable.
std::span<const Option> model_options();
// All that may stand there.
std::vector<const Option*> options_of_models();

// Its name in the settings file, in `werk config` and in Sources; also of one that the file can't
// hold.
std::string key_of(const Option& option);
// The same in [models."ID"].
std::string model_key_of(const Option& option);

struct GivenFlag {
  std::string flag;
  std::string value;  // "" for a flag without one
};

using Environment = std::function<std::optional<std::string>(std::string_view name)>;

// Defaults, then the file, the environment, the flags. Fails for a wrong flag or variable; faults
// of the file are kept in Settings::file, and what is sound of it counts.
Result<Settings> read_settings(std::span<const GivenFlag> flags, const Environment& environment,
                               ConfigFile file = {});

// The same with the file that --config or WERK_CONFIG names, else werk.toml in the home. Fails also
// when a named file is missing; an absent one in the home is an empty one.
Result<Settings> load_settings(std::span<const GivenFlag> flags, const Environment& environment);

// "/a/werk.toml:12: prot is no setting; did you mean port?"
std::string fault_text(const ConfigFile& file, const Fault& fault);

// The settings by which this model runs: its own table's, else the node's.
ModelSettings settings_of_model(const Settings& settings, std::string_view id);

}  // namespace werk::app
