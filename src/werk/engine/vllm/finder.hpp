// Finds the vLLM to start: the environment of the python that WERK_VLLM_PYTHON names, else `vllm`
// of PATH; and learns its version from the packages of that python, which takes a moment, where
// `vllm --version` takes as long as loading PyTorch. What was found is remembered for as long as
// the path stays the same. Owned by its engine; loop thread only.
#pragma once

#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "werk/async/clock.hpp"
#include "werk/base/result.hpp"
#include "werk/process/child.hpp"

namespace werk::engine::vllm {

struct Executable {
  std::string program;
  std::vector<std::string> first_words;  // before "serve"
  std::string version;                   // empty: it couldn't be told
};

struct FinderSettings {
  std::optional<std::string> python;     // as WERK_VLLM_PYTHON names it
  std::vector<std::string> environment;  // complete
};

class Finder {
 public:
  Finder(FinderSettings settings, process::Children& children, async::Clock& clock)
      : settings_(std::move(settings)), children_(children), clock_(clock) {}

  // Fails with `not_found`, what was looked at and the way to supply one; with `cancelled`.
  async::awaitable<Result<Executable>> find(std::stop_token stop);

 private:
  async::awaitable<Result<Executable>> find_by_python(std::stop_token stop);
  async::awaitable<Result<Executable>> find_in_path(std::stop_token stop);
  async::awaitable<Result<std::string>> version_in(std::string python, std::stop_token stop);
  std::optional<std::string> program_of(const std::string& name) const;

  FinderSettings settings_;
  process::Children& children_;
  async::Clock& clock_;
  std::optional<std::string> found_at_;
  Executable found_;
};

}  // namespace werk::engine::vllm
