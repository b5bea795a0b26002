// `werk engine install onnx-genai|transformers`: the Python environment that such a worker runs in,
// below WERK_HOME, from the locks beside the worker programs (exact versions with digests). It
// becomes visible in one rename at the end. Blocking; main thread, no loop of the caller's.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "werk/app/command_line.hpp"
#include "werk/app/steps.hpp"
#include "werk/base/result.hpp"
#include "werk/engine/worker/kinds.hpp"

namespace werk::app {

// Where the worker programs of this build lie: beside the installed program
// (../share/werk/workers), else where it was built from.
std::filesystem::path worker_programs();

struct EnvironmentInstall {
  std::filesystem::path home;
  std::filesystem::path programs;
  IfMissing if_missing = IfMissing::no;
  std::string search_path;
  std::vector<std::string> environment;  // complete
};

// Gives a sentence about what is there now.
Result<std::string> install_environment(const engine::worker::WorkerKind& kind,
                                        const EnvironmentInstall& install, const Say& say);

// What is installed of it, as a line; empty if nothing is.
std::string describe_environment(const engine::worker::WorkerKind& kind,
                                 const std::filesystem::path& home,
                                 const std::vector<std::string>& environment);

}  // namespace werk::app
