// Programs and environments as plain values: where a program of a given name lies, and what a
// child's complete environment is built from. No state; reads the file system and this process's
// environment.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace werk::process {

// Looks up one variable; tests pass their own, main passes own_variable.
using Environment = std::function<std::optional<std::string>(std::string_view name)>;

std::optional<std::string> own_variable(std::string_view name);

// This process's environment as "NAME=value" entries.
std::vector<std::string> own_environment();

// The last value of NAME in a list of "NAME=value" entries.
std::optional<std::string> variable_in(std::span<const std::string> entries, std::string_view name);

// The entries with this one in the place of any of the same name.
std::vector<std::string> with_variable(std::vector<std::string> environment, std::string_view name,
                                       std::string_view value);

// The path of an executable regular file: `name` itself if it holds a slash, else the first match
// in the colon-separated `search_path` (an empty part means the current folder, as in a shell).
std::optional<std::string> find_program(std::string_view name, std::string_view search_path);

}  // namespace werk::process
