// The node's settings as plain values, and the one table of options that fills them: flag,
// environment variable, what it means, how it is read. A flag wins over its variable, a variable
// over the default. Errors name the option (or the variable that held the value) and what it takes.
// Pure, but for the key file that WERK_API_KEYS names.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "werk/base/log.hpp"
#include "werk/base/result.hpp"
#include "werk/engine/llama_server/options.hpp"
#include "werk/gateway/messages_request.hpp"
#include "werk/routing/router.hpp"

namespace werk::app {

enum class Permission : std::uint8_t { no, yes };

struct Settings {
  std::optional<std::string> home;  // --model-home; else model::home_folder decides
  std::string host = "127.0.0.1";
  std::uint16_t port = 11434;
  std::optional<std::string> model;
  std::string backend = "auto";
  engine::llama_server::LlamaServerOptions llama;
  engine::llama_server::NamedExecutables executables;
  std::vector<std::string> keys;
  Permission unauthenticated = Permission::no;
  std::vector<std::string> allowed_hosts;
  std::vector<routing::AliasRule> aliases;
  gateway::PromptEdits prompt_edits = gateway::PromptEdits::apply;
  std::uint64_t body_bytes_max = std::uint64_t{128} << 20;
  std::size_t max_resident = 0;
  std::optional<std::chrono::milliseconds> capacity_wait;
  std::chrono::milliseconds early_headers{0};  // zero: never
  std::chrono::milliseconds start_timeout{300'000};
  std::chrono::milliseconds drain_timeout{30'000};
  log::Level log_level = log::Level::info;
};

// How an option stands on the command line.
enum class Shape : std::uint8_t { value, repeated, flag, variable_only };

struct Option {
  std::string_view flag;      // "--port"; empty with variable_only
  std::string_view variable;  // or empty
  std::string_view takes;     // "N", "DURATION"; empty for a flag
  std::string_view help;
  Shape shape = Shape::value;
  Status (*set)(Settings& settings, const std::string& value) = nullptr;
};

// In the order in which --help shows them.
std::span<const Option> options();

struct GivenFlag {
  std::string flag;
  std::string value;  // "" for a flag without one
};

using Environment = std::function<std::optional<std::string>(std::string_view name)>;

// Defaults, then the environment, then the flags.
Result<Settings> read_settings(std::span<const GivenFlag> flags, const Environment& environment);

// "500ms", "30s", "2m", "1h", "0" or a bare number of seconds.
Result<std::chrono::milliseconds> parse_duration(std::string_view text);

}  // namespace werk::app
