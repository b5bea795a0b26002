// `werk remove ID`: takes a model out of the store, unless the node that serves the home holds it.
// Files that were linked stay where they are. Blocking; main thread.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

#include "werk/app/command_line.hpp"
#include "werk/app/settings.hpp"

namespace werk::app {

// How a node's page (GET /werk/v1/observability) says that it holds the model of this manifest
// identity: "ready, 2 calls". None when it holds no runtime of it, or one that is ending.
// `internal` for a page that is not understood.
Result<std::optional<std::string>> held_as(std::string_view page, std::string_view identity);

// Returns the process's exit status.
int remove_command(const CommandLine& line, const Settings& settings,
                   const std::filesystem::path& home);

}  // namespace werk::app
