// Where Werk keeps its models, engines and run files: the home folder. Pure: the environment comes
// in as a function, so any thread may ask and tests need no environment of their own. Nothing is
// created here.
#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <string>

#include "werk/base/result.hpp"

namespace werk::model {

// The value of an environment variable; none when it is not set.
using Environment = std::function<std::optional<std::string>(const std::string& name)>;

// The process's own environment.
Environment process_environment();

// WERK_HOME, else $XDG_DATA_HOME/werk, else ~/.local/share/werk. Empty variables count as unset; a
// relative WERK_HOME is taken from `current_folder`, a relative XDG_DATA_HOME is ignored, as its
// specification says. Fails with `invalid_request` when nothing names a home.
Result<std::filesystem::path> home_folder(const Environment& environment,
                                          const std::filesystem::path& current_folder);

}  // namespace werk::model
