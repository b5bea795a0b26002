// `werk config`: every effective setting with where it came from, and `werk config check`: every
// fault of a settings file. Secrets are never shown. Each returns the process's exit status;
// blocking, main thread.
#pragma once

#include <string>

#include "werk/app/command_line.hpp"

namespace werk::app {

// For people, in 80 columns; what isn't set is "-".
std::string config_table(const Settings& settings);
// For programs: {"file" (null: there is none), "settings": {KEY: {"value", "source"}}, "models":
// {ID: {KEY: ...}}}.
std::string config_json(const Settings& settings);

int config_command(const CommandLine& line, const Settings& settings);
// 0: the file is sound; 1: it isn't, or there is none.
int config_check_command(const CommandLine& line);

}  // namespace werk::app
