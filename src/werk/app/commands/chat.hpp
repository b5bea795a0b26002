// `werk chat`: a conversation at the terminal or through a pipe. The history goes with each turn,
// so the node keeps nothing; Ctrl-C stops an answer and not the conversation. Blocking; main
// thread.
#pragma once

#include <filesystem>

#include "werk/app/command_line.hpp"

namespace werk::app {

// Exit status: 0 at the end of the input or /bye, 1 with the reason on standard error, 130 after
// Ctrl-C.
int chat_command(const CommandLine& line, const Settings& settings,
                 const std::filesystem::path& home);

}  // namespace werk::app
