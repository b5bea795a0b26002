// The node: everything that `werk serve` runs, wired together, from its start to the end of its
// shutdown. The only place, with engines.cpp, that names concrete parts. Called on the main thread,
// which becomes the loop thread.
#pragma once

#include <filesystem>

#include "werk/app/settings.hpp"

namespace werk::app {

// Serves until a signal ends it. Returns the process's exit status: 0 after a shutdown, 1 when it
// could not start (the reason is on standard error).
int serve(const Settings& settings, const std::filesystem::path& home);

}  // namespace werk::app
