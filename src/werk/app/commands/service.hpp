// `werk service install|uninstall`: the node as a systemd user service. The unit holds the options
// of the command line and no secret; one that Werk didn't write is never touched. Without systemctl
// the unit is written all the same and the person told what to do. Blocking; main thread.
#pragma once

#include <filesystem>
#include <span>
#include <string>

#include "werk/app/command_line.hpp"

namespace werk::app {

struct ServiceUnit {
  std::string program;  // absolute
  std::span<const std::string> words;
  std::filesystem::path home;
  std::chrono::milliseconds drain{0};
};

// The unit's text. Refuses words that no unit can hold.
Result<std::string> unit_text(const ServiceUnit& unit);

// Exit status: 0, or 1 with the reason on standard error.
int service_install_command(const CommandLine& line, const Settings& settings,
                            const std::filesystem::path& home);
int service_uninstall_command();

}  // namespace werk::app
