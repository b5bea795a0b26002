// `werk run`: one question, answered on standard output. Blocking; main thread.
#pragma once

#include <filesystem>
#include <string>

#include "werk/app/command_line.hpp"
#include "werk/app/commands/ask_node.hpp"

namespace werk::app {

// Fails with near names where the node has no such model.
Status check_model(const NodeClient& node, const std::string& name);

// The failure as one line on standard error, and the command's exit status: 130 after a signal.
int ask_failed(const Error& error);

// Exit status: 0, 1 with the reason on standard error, 2 where there is nothing to ask, 130 after
// Ctrl-C.
int ask_command(const CommandLine& line, const Settings& settings,
                const std::filesystem::path& home);

}  // namespace werk::app
