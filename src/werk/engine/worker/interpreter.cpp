#include "werk/engine/worker/interpreter.hpp"

#include <fmt/format.h>

#include "werk/engine/owned/python_package.hpp"
#include "werk/process/program.hpp"

namespace werk::engine::worker {
std::filesystem::path managed_environment(const std::filesystem::path& home,
                                          const WorkerKind& kind) {
  return home / "engines" / kind.name;
}

std::vector<std::string> interpreter_candidates(const WorkerKind& kind,
                                                const InterpreterSettings& settings) {
  if (settings.named) return {*settings.named};
  return {(managed_environment(settings.home, kind) / "bin" / "python").string(), "python3"};
}

async::awaitable<Result<Interpreter>> InterpreterFinder::find(std::stop_token stop) {
  const std::string search =
      process::variable_in(settings_.environment, "PATH").value_or("/usr/local/bin:/usr/bin:/bin");
  std::string why;
  const std::vector<std::string> candidates = interpreter_candidates(kind_, settings_);
  for (const std::string& candidate : candidates) {
    const auto path = process::find_program(candidate, search);
    if (!path) {
      if (settings_.named)
        why = fmt::format("{} names {}, which is no program", settings_.named_by, candidate);
      continue;
    }
    if (found_ && found_->path == *path) co_return *found_;
    Result<std::string> version = co_await version_in(*path, stop);
    if (version) {
      found_ = Interpreter{*path, std::move(*version)};
      co_return *found_;
    }
    if (version.error().code == ErrorCode::cancelled) co_return pass_on(version);
    why = settings_.named ? fmt::format("{} names {}, which {}", settings_.named_by, *path,
                                        version.error().message)
                          : fmt::format("{} {}", *path, version.error().message);
  }
  if (why.empty()) why = "there is no python3 in PATH";
  co_return fail(
      ErrorCode::not_found,
      fmt::format("{0} has no interpreter: {1}; `werk engine install {0}` brings one, or "
                  "{2} names one",
                  kind_.name, why, kind_.variables.front()));
}

async::awaitable<Result<std::string>> InterpreterFinder::version_in(std::string path,
                                                                    std::stop_token stop) {
  owned::PackageQuestion question{std::move(path), std::string(kind_.package),
                                  settings_.environment};
  co_return co_await owned::package_version(children_, clock_, std::move(question), stop);
}

}  // namespace werk::engine::worker
