#include "werk/app/engine_install.hpp"

#include <fmt/format.h>

#include <array>
#include <fstream>

#include "werk/app/engine_build.hpp"
#include "werk/app/engine_environment.hpp"
#include "werk/app/terminal.hpp"
#include "werk/base/text.hpp"
#include "werk/base/timestamp.hpp"
#include "werk/engine/llama_server/managed.hpp"
#include "werk/engine/llama_server/probe.hpp"
#include "werk/process/program.hpp"

namespace werk::app {
namespace {

namespace llama = engine::llama_server;
namespace fs = std::filesystem;

constexpr std::chrono::seconds kVersionLimit{10};
constexpr std::string_view kProgram = "llama-server";

fs::path engines_folder(const fs::path& home) { return home / "engines"; }
fs::path log_file(const fs::path& home) { return engines_folder(home) / "install.log"; }

Result<llama::Version> version_of(StepRunner& runner, const EngineInstall& install,
                                  const std::string& program) {
  Step step;
  step.program = program;
  step.arguments = {"--version"};
  step.environment = install.environment;
  step.limit = kVersionLimit;
  auto text = runner.capture(std::move(step));
  if (!text) return pass_on(text);
  auto version = llama::parse_version(*text);
  if (!version) {
    return fail(ErrorCode::not_found,
                fmt::format("{} is not a llama-server: its --version names none", program));
  }
  return *version;
}

// What the variables name, with the variable.
std::vector<std::pair<std::string, std::string>> named_ones(const llama::NamedExecutables& named) {
  std::vector<std::pair<std::string, std::string>> all;
  for (const llama::Mode mode : llama::kModes) {
    const auto& name = named.by_mode[static_cast<std::size_t>(mode)];
    if (name) all.emplace_back(llama::variable_of(mode), *name);
  }
  if (named.any_mode) all.emplace_back("WERK_LLAMA_SERVER", *named.any_mode);
  return all;
}

// A sentence about a llama-server that is there already and runs; none if one must be brought. A
// named one that doesn't run is an error: building another would not help whoever named it.
Result<std::optional<std::string>> look_for_one(const EngineInstall& install, const Say& say) {
  StepRunner runner{fs::path()};
  for (const auto& [variable, name] : named_ones(install.named)) {
    const auto program = process::find_program(name, install.search_path);
    if (!program) {
      return fail(
          ErrorCode::not_found,
          fmt::format("{} names '{}', and there is no such executable file", variable, name));
    }
    auto version = version_of(runner, install, *program);
    if (!version) {
      return fail(ErrorCode::not_found, fmt::format("{} names '{}', which does not run: {}",
                                                    variable, name, version.error().message));
    }
    return fmt::format("llama-server {} is named by {} ({})", version->text(), variable, *program);
  }
  const std::string fingerprint = llama::this_processor().fingerprint();
  if (const auto managed = llama::usable_managed(install.home, fingerprint)) {
    return fmt::format("llama-server {} is installed ({})", managed->version,
                       managed->executable().string());
  }
  if (const auto program = process::find_program(kProgram, install.search_path)) {
    auto version = version_of(runner, install, *program);
    if (version) return fmt::format("llama-server {} is in PATH ({})", version->text(), *program);
    say(Note::line, fmt::format("{} does not run and is passed over", *program));
  }
  return std::nullopt;
}

// What --from is.
enum class FromKind : std::uint8_t { source_folder, release_folder, executable, package };

struct From {
  FromKind kind;
  fs::path path;
  fs::path program;  // of a release folder: where its executable lies
};

bool is_executable(const fs::path& path) {
  return process::find_program(path.string(), "").has_value();
}

Result<From> classify(const fs::path& given) {
  std::error_code error;
  const fs::path path = fs::absolute(given, error);
  if (!fs::exists(path, error)) {
    return fail(ErrorCode::not_found,
                fmt::format("--from names '{}', which does not exist", given.string()));
  }
  if (!fs::is_directory(path, error)) {
    if (path.extension() == ".tgz") return From{FromKind::package, path, {}};
    if (is_executable(path)) return From{FromKind::executable, path, path};
    return fail(ErrorCode::invalid_request,
                fmt::format("--from names '{}', which is neither executable nor the package {}",
                            given.string(), kLlamaPackageFile));
  }
  const bool is_source =
      fs::exists(path / "CMakeLists.txt") && fs::exists(path / "include" / "llama.h");
  constexpr std::array kPlaces{"", "bin", "build/bin"};
  for (const std::string_view place : kPlaces) {
    const fs::path program = place.empty() ? path / kProgram : path / place / kProgram;
    // A source folder may hold an old build of its own.
    if (!is_source && is_executable(program) && !fs::is_directory(program, error)) {
      return From{FromKind::release_folder, path, program};
    }
  }
  if (is_source) return From{FromKind::source_folder, path, {}};
  return fail(
      ErrorCode::invalid_request,
      fmt::format(
          "--from names '{}', which is neither a source folder of llama.cpp (no CMakeLists.txt and "
          "include/llama.h) nor a release with a llama-server in it, in bin or in build/bin",
          given.string()));
}

Status copy_tree(const fs::path& from, const fs::path& to) {
  std::error_code error;
  fs::create_directories(to, error);
  if (!error) {
    fs::copy(from, to, fs::copy_options::recursive | fs::copy_options::copy_symlinks, error);
  }
  if (!error) return {};
  return fail(ErrorCode::io, fmt::format("cannot copy {}: {}", from.string(), error.message()));
}

Status copy_program(const fs::path& from, const fs::path& stage) {
  std::error_code error;
  fs::create_directories(stage / "bin", error);
  if (!error) fs::copy_file(from, stage / "bin" / kProgram, error);
  if (!error) return {};
  return fail(ErrorCode::io, fmt::format("cannot copy {}: {}", from.string(), error.message()));
}

// A release keeps its shape, since its executable finds its libraries by it: beside it, or in
// ../lib.
Status copy_release(const From& from, const fs::path& stage) {
  const fs::path folder = from.program.parent_path();
  const bool has_own_bin = folder.filename() == "bin" && folder.parent_path() == from.path;
  return has_own_bin ? copy_tree(from.path, stage) : copy_tree(folder, stage / "bin");
}

Status build_from_source(const BuildSite& site, const std::optional<From>& from,
                         const llama::Processor& processor, const fs::path& stage) {
  SourceKind kind = SourceKind::package_from_registry;
  if (from) kind = from->kind == FromKind::package ? SourceKind::package_file : SourceKind::folder;
  auto tools = check_build_tools(kind, site.search_path);
  if (!tools) return tools;
  fs::path source = kind == SourceKind::folder ? from->path : fs::path();
  if (kind != SourceKind::folder) {
    Result<fs::path> package = from ? from->path : fs::path();
    if (!from) package = fetch_llama_package(site);
    if (!package) return pass_on(package);
    auto unpacked = unpack_llama_package(site, *package);
    if (!unpacked) return pass_on(unpacked);
    source = *unpacked;
  }
  auto program = build_llama_server(site, source, processor);
  if (!program) return pass_on(program);
  return copy_program(*program, stage);
}

// Fills `stage` with what will be the engine's folder.
Status fill_stage(const BuildSite& site, const std::optional<From>& from,
                  const llama::Processor& processor, const fs::path& stage) {
  if (from && from->kind == FromKind::executable) return copy_program(from->path, stage);
  if (from && from->kind == FromKind::release_folder) return copy_release(*from, stage);
  return build_from_source(site, from, processor, stage);
}

std::string source_text(const std::optional<From>& from) {
  return from ? from->path.string() : fmt::format("npm package {}", kLlamaPackage);
}

Status write_record(const llama::ManagedEngine& engine, const fs::path& stage) {
  const fs::path file = stage / "engine.json";
  std::ofstream out(file, std::ios::trunc);
  out << llama::managed_to_json(engine);
  out.close();
  if (out) return {};
  return fail(ErrorCode::io, fmt::format("cannot write {}", file.string()));
}

// Makes the stage the engine's folder. An engine that stood there goes to the scratch folder, and
// those who run it keep its file.
Status make_visible(const fs::path& stage, const fs::path& target, const fs::path& scratch) {
  std::error_code error;
  fs::create_directories(target.parent_path(), error);
  if (fs::exists(target, error)) fs::rename(target, scratch / "replaced", error);
  if (!error) fs::rename(stage, target, error);
  if (!error) return {};
  return fail(ErrorCode::io, fmt::format("cannot write {}: {}", target.string(), error.message()));
}

Result<std::string> bring(const EngineInstall& install, const Say& say) {
  std::optional<From> from;
  if (install.from) {
    auto classified = classify(*install.from);
    if (!classified) return pass_on(classified);
    from = *classified;
  }
  // Before the scratch folder, so that no signal ends its removal.
  StepRunner runner(log_file(install.home));
  auto scratch = ScratchFolder::make(engines_folder(install.home), "building");
  if (!scratch) return pass_on(scratch);
  const BuildSite site{runner, say, scratch->path(), install.environment, install.search_path};
  const llama::Processor processor = llama::this_processor();
  const fs::path stage = scratch->path() / "stage";
  auto filled = fill_stage(site, from, processor, stage);
  if (!filled) return pass_on(filled);

  say(Note::line, "[5/5] check and install");
  llama::ManagedEngine engine;
  engine.folder = stage;
  auto version = version_of(runner, install, engine.executable().string());
  if (!version) {
    const bool alone = from && from->kind == FromKind::executable;
    return fail(
        ErrorCode::not_found,
        fmt::format("the llama-server does not run: {}{}", version.error().message,
                    alone ? "\nIf it needs libraries that lie beside it, give their folder" : ""));
  }
  engine.version =
      version->semantic.empty() ? fmt::format("b{}", version->build) : version->semantic;
  engine.source = source_text(from);
  engine.processor = processor.fingerprint();
  engine.built_for = fmt::format("{} ({})", processor.model, fmt::join(processor.features, " "));
  engine.sha256 = !from || from->kind == FromKind::package ? std::string(kLlamaPackageSha256) : "";
  engine.installed_at = timestamp(std::chrono::system_clock::now());
  auto written = write_record(engine, stage);
  if (!written) return pass_on(written);
  const fs::path target =
      llama::managed_root(install.home) / llama::managed_name(engine.version, engine.processor);
  auto visible = make_visible(stage, target, scratch->path());
  if (!visible) return pass_on(visible);
  engine.folder = target;
  return fmt::format("llama-server {} is installed ({})", engine.version,
                     engine.executable().string());
}

}  // namespace

EngineInstall engine_install_here(const fs::path& home) {
  EngineInstall install;
  install.home = home;
  for (const llama::Mode mode : llama::kModes) {
    install.named.by_mode[static_cast<std::size_t>(mode)] =
        process::own_variable(llama::variable_of(mode));
  }
  install.named.any_mode = process::own_variable("WERK_LLAMA_SERVER");
  install.search_path = process::own_variable("PATH").value_or("");
  install.environment = process::own_environment();
  return install;
}

Result<std::string> install_llama_server(const EngineInstall& install, const Say& say) {
  if (install.if_missing == IfMissing::yes) {
    auto found = look_for_one(install, say);
    if (!found) return pass_on(found);
    if (*found) return **found;
  }
  auto lock = FolderLock::take(engines_folder(install.home), say);
  if (!lock) return pass_on(lock);
  if (install.if_missing == IfMissing::yes) {
    // Another one may have brought it while this one waited.
    auto found = look_for_one(install, say);
    if (!found) return pass_on(found);
    if (*found) return **found;
  }
  auto brought = bring(install, say);
  if (!brought && brought.error().code == ErrorCode::io) {
    brought.error().message += fmt::format("\nThe whole log: {}", log_file(install.home).string());
  }
  return brought;
}

std::vector<std::string> describe_engines(const EngineInstall& install) {
  std::vector<std::string> lines;
  const std::string fingerprint = llama::this_processor().fingerprint();
  for (const llama::ManagedEngine& engine : llama::list_managed(install.home)) {
    lines.push_back(fmt::format("llama-server {}  {}  {}  from {}", engine.version,
                                engine.installed_at, engine.executable().string(), engine.source));
    if (engine.processor != fingerprint) {
      lines.back() += fmt::format("  (for another processor: {})", engine.built_for);
    }
  }
  StepRunner runner{fs::path()};
  const auto add = [&](std::string_view origin, const std::string& name) {
    const auto program = process::find_program(name, install.search_path);
    if (!program) return lines.push_back(fmt::format("{}  {}  missing", origin, name));
    const auto version = version_of(runner, install, *program);
    lines.push_back(version
                        ? fmt::format("llama-server {}  {}  {}", version->text(), origin, *program)
                        : fmt::format("{}  {}  does not run", origin, *program));
  };
  for (const auto& [variable, name] : named_ones(install.named)) add(variable, name);
  if (process::find_program(kProgram, install.search_path)) add("PATH", std::string(kProgram));
  for (const auto* kind : {&engine::worker::kOnnxGenai, &engine::worker::kTransformers}) {
    const std::string line = describe_environment(*kind, install.home, install.environment);
    if (!line.empty()) lines.push_back(line);
  }
  return lines;
}

namespace {

int told(const Result<std::string>& installed) {
  if (!installed) return failed(installed.error());
  fmt::print("{}\n", *installed);
  return 0;
}

int install_worker(const engine::worker::WorkerKind& kind, const CommandLine& line,
                   const fs::path& home) {
  EnvironmentInstall install{home, worker_programs(), line.if_missing,
                             process::own_variable("PATH").value_or(""),
                             process::own_environment()};
  return told(install_environment(kind, install, say_to(stderr)));
}

}  // namespace

int engine_install_command(const CommandLine& line, const fs::path& home) {
  const auto* kind = engine::worker::worker_kind(line.subject);
  if (line.subject != kProgram && kind == nullptr) {
    fmt::print(stderr, "werk: there is no engine '{}' to install; known: {}, {}, {}\n",
               printable(line.subject), kProgram, engine::worker::kOnnxGenai.name,
               engine::worker::kTransformers.name);
    return 1;
  }
  if (kind != nullptr) return install_worker(*kind, line, home);
  EngineInstall install = engine_install_here(home);
  install.if_missing = line.if_missing;
  if (!line.from.empty()) install.from = line.from;
  return told(install_llama_server(install, say_to(stderr)));
}

int engine_list_command(const CommandLine&, const fs::path& home) {
  const auto lines = describe_engines(engine_install_here(home));
  for (const std::string& text : lines) fmt::print("{}\n", text);
  if (lines.empty()) {
    fmt::print("no engine is installed; `werk engine install llama-server` builds one\n");
  }
  return 0;
}

}  // namespace werk::app
