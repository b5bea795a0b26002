// Finds the interpreter that a worker runs in: the one that a variable names, else the managed
// environment below the home, else python3 of PATH; and learns, by running it briefly, whether it
// has the engine's package and in which version. What works is remembered for as long as the file
// stays the same; what doesn't is looked for anew each time, so an environment that was just made
// is found. Owned by its engine; loop thread only.
#pragma once

#include <chrono>
#include <filesystem>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "werk/async/clock.hpp"
#include "werk/base/result.hpp"
#include "werk/engine/worker/kinds.hpp"
#include "werk/process/child.hpp"

namespace werk::engine::worker {

struct Interpreter {
  std::string path;
  std::string package_version;
};

struct InterpreterSettings {
  std::optional<std::string> named;  // by a variable
  std::string named_by;              // that variable
  std::filesystem::path home;
  std::vector<std::string> environment;  // complete
};

// Of what may be tried, in order; a named one alone if there is one.
std::vector<std::string> interpreter_candidates(const WorkerKind& kind,
                                                const InterpreterSettings& settings);
// Where `werk engine install` puts the environment of this kind.
std::filesystem::path managed_environment(const std::filesystem::path& home,
                                          const WorkerKind& kind);

class InterpreterFinder {
 public:
  InterpreterFinder(const WorkerKind& kind, InterpreterSettings settings,
                    process::Children& children, async::Clock& clock)
      : kind_(kind), settings_(std::move(settings)), children_(children), clock_(clock) {}

  // Fails with `not_found`, what was looked at and the way to supply one; with `cancelled`.
  async::awaitable<Result<Interpreter>> find(std::stop_token stop);

 private:
  async::awaitable<Result<std::string>> version_in(std::string path, std::stop_token stop);

  const WorkerKind& kind_;
  InterpreterSettings settings_;
  process::Children& children_;
  async::Clock& clock_;
  std::optional<Interpreter> found_;
};

}  // namespace werk::engine::worker
