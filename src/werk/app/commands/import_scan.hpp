// `werk import --scan`: lists the models that other tools keep on this machine, and with `--link`
// registers them where they lie. Blocking; main thread.
#pragma once

#include <filesystem>

#include "werk/app/command_line.hpp"
#include "werk/model/home.hpp"

namespace werk::app {

// Returns the process's exit status.
int import_scan_command(const CommandLine& line, const model::Environment& environment,
                        const std::filesystem::path& home);

}  // namespace werk::app
