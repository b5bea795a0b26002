// The commands that control the running node of the home, or one that --url names: ps, load,
// unload, pin, unpin, logs, stop. Each asks over HTTP, prints what came of it on standard output
// and faults with the way out on standard error. Exit status: 0, 1, or 130 after Ctrl-C. Blocking;
// main thread.
#pragma once

#include <filesystem>

#include "werk/app/command_line.hpp"

namespace werk::app {

int ps_command(const CommandLine& line, const Settings& settings,
               const std::filesystem::path& home);
int load_command(const CommandLine& line, const Settings& settings,
                 const std::filesystem::path& home);
int unload_command(const CommandLine& line, const Settings& settings,
                   const std::filesystem::path& home);
// Also unpin.
int pin_command(const CommandLine& line, const Settings& settings,
                const std::filesystem::path& home);
// Where no node serves the home its files are read.
int logs_command(const CommandLine& line, const Settings& settings,
                 const std::filesystem::path& home);
int stop_command(const CommandLine& line, const Settings& settings,
                 const std::filesystem::path& home);

}  // namespace werk::app
