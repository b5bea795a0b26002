// From the command line to an exit status: reads the settings, finds the home and calls the
// command. Everything a person is told about a failure goes to standard error. Main thread.
#pragma once

#include "werk/app/command_line.hpp"

namespace werk::app {

// 0: done; 1: it failed, and standard error says why and what to do; 2: the command line was wrong.
int run(int argc, const char* const* argv);

}  // namespace werk::app
