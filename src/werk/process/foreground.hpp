// A program that gets the terminal: it runs in our own process group with our own files, as one
// that a shell runs for a person. For commands that hand over to a client; what a node starts goes
// through Children. Blocking; main thread, and no loop may run meanwhile.
#pragma once

#include <string>
#include <vector>

#include "werk/base/result.hpp"

namespace werk::process {

struct Foreground {
  std::string program;                 // its path
  std::string name;                    // its own first word
  std::vector<std::string> arguments;  // without that word
  std::vector<std::string> environment;
};

// This process becomes the program. Returns only if it can't (io).
Error become(Foreground program);

// Runs it to its end: its exit status, or 128 and the signal that ended it; io if it can't be run.
// What is typed at the terminal reaches it without us; SIGTERM and SIGHUP sent to us are passed on.
// Leaves SIGINT and SIGQUIT ignored.
Result<int> run_in_foreground(Foreground program);

}  // namespace werk::process
