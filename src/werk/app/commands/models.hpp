// The commands that show the store: list, with what a running node has from elsewhere, and inspect.
// Each returns the process's exit status, prints results on standard output and faults with the way
// out on standard error. Blocking; main thread.
#pragma once

#include <filesystem>

#include "werk/app/command_line.hpp"

namespace werk::app {

int list_command(const CommandLine& line, const Settings& settings,
                 const std::filesystem::path& home);
int inspect_command(const CommandLine& line, const std::filesystem::path& home);

}  // namespace werk::app
