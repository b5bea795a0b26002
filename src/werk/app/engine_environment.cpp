#include "werk/app/engine_environment.hpp"

#include <fmt/format.h>

#include "werk/base/text.hpp"
#include "werk/engine/owned/python_package.hpp"
#include "werk/engine/worker/interpreter.hpp"
#include "werk/process/program.hpp"

namespace werk::app {
namespace {

namespace fs = std::filesystem;

using engine::worker::WorkerKind;

constexpr std::chrono::seconds kInstallLimit{3600};
constexpr std::string_view kOldEnough = "import sys; sys.exit(sys.version_info < (3, 11))";

bool is_there(const fs::path& path) {
  std::error_code error;
  return fs::exists(path, error);
}

// The locks of a kind: its own, and what its packages need besides on this system.
std::vector<fs::path> locks_of(const WorkerKind& kind, const fs::path& programs) {
  std::vector<fs::path> locks = {programs / "requirements" / fmt::format("{}.txt", kind.name)};
  const fs::path more = programs / "requirements" / fmt::format("{}-cuda.txt", kind.name);
  if (is_there(more)) locks.push_back(more);
  return locks;
}

class Site {
 public:
  Site(const WorkerKind& kind, const EnvironmentInstall& install, StepRunner& runner,
       const fs::path& stage)
      : kind_(kind), install_(install), runner_(runner), stage_(stage) {}

  Result<std::string> version_in(const fs::path& environment) {
    auto version = runner_.capture(step(
        (environment / "bin" / "python").string(),
        {"-I", "-c", std::string(engine::owned::kVersionQuestion), std::string(kind_.package)}));
    if (!version) return pass_on(version);
    return std::string(trim(*version));
  }

  Status fill(const Say& say) {
    if (!process::find_program("python3", install_.search_path)) {
      return fail(ErrorCode::not_found, "python3 is missing (packages python3 and python3-venv)");
    }
    if (Status right = runner_.run(step("python3", {"-c", std::string(kOldEnough)})); !right) {
      if (right.error().code == ErrorCode::cancelled) return right;
      return fail(ErrorCode::not_found, "python3 is older than 3.11, which the workers need");
    }
    say(Note::line, "[1/3] make the environment");
    if (Status made = runner_.run(step("python3", {"-m", "venv", stage_.string()})); !made) {
      if (made.error().code == ErrorCode::cancelled) return made;
      return fail(ErrorCode::not_found, fmt::format("no environment could be made (package "
                                                    "python3-venv): {}",
                                                    made.error().message));
    }
    say(Note::line, fmt::format("[2/3] fetch and install {}", kind_.package));
    Step fetch = step((stage_ / "bin" / "python").string(),
                      {"-m", "pip", "install", "--require-hashes", "--no-deps", "--only-binary",
                       ":all:", "--no-compile", "--disable-pip-version-check", "--no-input"});
    for (const fs::path& lock : locks_of(kind_, install_.programs)) {
      fetch.arguments.emplace_back("-r");
      fetch.arguments.push_back(lock.string());
    }
    fetch.limit = kInstallLimit;
    fetch.on_line = [&say](std::string_view line) {
      if (line.starts_with("Collecting ") || line.starts_with("Downloading ") ||
          line.starts_with("Installing "))
        say(Note::progress, printable(line.substr(0, 76)));
    };
    Status fetched = runner_.run(std::move(fetch));
    if (fetched || fetched.error().code == ErrorCode::cancelled) return fetched;
    return fail(
        ErrorCode::io,
        fmt::format("{} could not be installed: {}\nWithout a network, install {} into an "
                    "environment elsewhere and name its python with {}",
                    kind_.name, fetched.error().message, kind_.package, kind_.variables.front()));
  }

  // Shows that they load on this machine, and has Python compile them for the first start.
  Status import_modules() {
    Status loads = runner_.run(step((stage_ / "bin" / "python").string(),
                                    {"-I", "-c", fmt::format("import {}", kind_.modules)}));
    if (loads || loads.error().code == ErrorCode::cancelled) return loads;
    return fail(ErrorCode::io, fmt::format("{} is installed but doesn't load here: {}",
                                           kind_.package, loads.error().message));
  }

 private:
  Step step(std::string program, std::vector<std::string> arguments) const {
    Step one;
    one.program = std::move(program);
    one.arguments = std::move(arguments);
    one.environment = install_.environment;
    return one;
  }

  const WorkerKind& kind_;
  const EnvironmentInstall& install_;
  StepRunner& runner_;
  const fs::path& stage_;
};

}  // namespace

fs::path worker_programs() {
  std::error_code error;
  const fs::path program = fs::read_symlink("/proc/self/exe", error);
  const fs::path installed = program.parent_path().parent_path() / "share" / "werk" / "workers";
  return is_there(installed) ? installed : fs::path(WERK_WORKER_PROGRAMS);
}

Result<std::string> install_environment(const WorkerKind& kind, const EnvironmentInstall& install,
                                        const Say& say) {
  const fs::path target = engine::worker::managed_environment(install.home, kind);
  const fs::path parent = target.parent_path();
  auto lock = FolderLock::take(parent, say);
  if (!lock) return pass_on(lock);
  // Before the scratch folder, so that no signal ends its removal.
  StepRunner runner(parent / fmt::format("{}-install.log", kind.name));
  auto scratch = ScratchFolder::make(parent, "installing");
  if (!scratch) return pass_on(scratch);
  const fs::path stage = scratch->path() / "environment";
  Site site(kind, install, runner, stage);
  if (install.if_missing == IfMissing::yes && is_there(target)) {
    auto version = site.version_in(target);
    if (version) return fmt::format("{} {} is installed", kind.package, *version);
  }
  if (Status filled = site.fill(say); !filled) return pass_on(filled);
  say(Note::line, "[3/3] check");
  if (Status loads = site.import_modules(); !loads) return pass_on(loads);
  auto version = site.version_in(stage);
  if (!version) return pass_on(version);
  std::error_code error;
  // Workers that run go on with the files they hold.
  if (is_there(target)) fs::rename(target, scratch->path() / "old", error);
  if (!error) fs::rename(stage, target, error);
  if (error) {
    return fail(ErrorCode::io, fmt::format("cannot move the environment to {}: {}", target.string(),
                                           error.message()));
  }
  return fmt::format("{} {} is installed ({})", kind.package, *version, target.string());
}

std::string describe_environment(const WorkerKind& kind, const fs::path& home,
                                 const std::vector<std::string>& environment) {
  const fs::path folder = engine::worker::managed_environment(home, kind);
  if (!is_there(folder)) return {};
  const EnvironmentInstall install{home, {}, IfMissing::yes, {}, environment};
  StepRunner runner{fs::path()};
  Site site(kind, install, runner, folder);
  const auto version = site.version_in(folder);
  return version ? fmt::format("{}  {} {}  {}", kind.name, kind.package, *version, folder.string())
                 : fmt::format("{}  {}  does not run", kind.name, folder.string());
}

}  // namespace werk::app
