// `werk bench` and `werk bench compare`: from the command line to a measurement, its table on
// standard output and its file. Exit status: 0 if every request succeeded; 1 if one failed or
// nothing could be measured; 2 for a wrong command line; 130 after Ctrl-C, with what there was
// written. Blocking; main thread.
#pragma once

#include <filesystem>

#include "werk/app/command_line.hpp"

namespace werk::app {

int bench_command(const CommandLine& line, const Settings& settings,
                  const std::filesystem::path& home);
int bench_compare_command(const CommandLine& line);

}  // namespace werk::app
