// `werk top`: what the node does now, on a screen that keeps itself up to date, or once as text or
// JSON. Exit status: 0, 1 with the reason on standard error, 128 and the signal that ended it. One
// thread: it waits for keys, signals and the node's answers together.
#pragma once

#include <filesystem>

#include "werk/app/command_line.hpp"

namespace werk::app {

int top_command(const CommandLine& line, const Settings& settings,
                const std::filesystem::path& home);

}  // namespace werk::app
