// `werk doctor`: what this machine has for models and what it lacks, with the commands that help.
// Looks, and changes nothing but the engines' probe cache. Blocking; main thread.
#pragma once

#include <filesystem>

#include "werk/app/command_line.hpp"

namespace werk::app {

// Exit status: 0 if something can be served, 1 if nothing can.
int doctor_command(const CommandLine& line, const Settings& settings,
                   const std::filesystem::path& home);

}  // namespace werk::app
