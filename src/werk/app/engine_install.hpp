// `werk engine install` and `werk engine list`: brings a llama-server into WERK_HOME, from the
// pinned source or from what the person has, and shows what there is. An engine becomes visible in
// one rename at the end; until then everything lies in a scratch folder that the next run removes
// if this one dies. Blocking; main thread, no loop of the caller's.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "werk/app/command_line.hpp"
#include "werk/app/steps.hpp"
#include "werk/base/result.hpp"
#include "werk/engine/llama_server/options.hpp"

namespace werk::app {

struct EngineInstall {
  std::filesystem::path home;
  IfMissing if_missing = IfMissing::no;
  // A source folder, an unpacked release, an executable or the package; none: the pinned source.
  std::optional<std::filesystem::path> from;
  engine::llama_server::NamedExecutables named;
  std::string search_path;
  std::vector<std::string> environment;  // complete
};

// What the environment of this process asks for.
EngineInstall engine_install_here(const std::filesystem::path& home);

// Gives a sentence about what is there now. With if_missing it returns at once when a llama-server
// that runs is named by a variable, managed, or in PATH.
Result<std::string> install_llama_server(const EngineInstall& install, const Say& say);

// One line per engine: managed ones, named ones and the one in PATH.
std::vector<std::string> describe_engines(const EngineInstall& install);

// The commands; each returns the process's exit status.
int engine_install_command(const CommandLine& line, const std::filesystem::path& home);
int engine_list_command(const CommandLine& line, const std::filesystem::path& home);

}  // namespace werk::app
