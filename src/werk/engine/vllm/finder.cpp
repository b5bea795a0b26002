#include "werk/engine/vllm/finder.hpp"

#include <fmt/format.h>

#include <filesystem>
#include <fstream>

#include "werk/base/text.hpp"
#include "werk/engine/owned/python_package.hpp"
#include "werk/process/program.hpp"

namespace werk::engine::vllm {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kFirstLineBytesMax = 256;

// The python that runs a script, by its first line; none where that names something else.
std::optional<std::string> python_of_script(const std::string& script) {
  std::ifstream file(script, std::ios::binary);
  std::string line(kFirstLineBytesMax, '\0');
  file.read(line.data(), static_cast<std::streamsize>(line.size()));
  line.resize(static_cast<std::size_t>(file.gcount()));
  line.resize(std::min(line.find('\n'), line.size()));
  if (!line.starts_with("#!/")) return std::nullopt;
  std::string python(trim(std::string_view(line).substr(2)));
  const bool is_python = fs::path(python).filename().string().starts_with("python");
  if (!is_python || python.find(' ') != std::string::npos) return std::nullopt;
  return python;
}

}  // namespace

std::optional<std::string> Finder::program_of(const std::string& name) const {
  return process::find_program(
      name,
      process::variable_in(settings_.environment, "PATH").value_or("/usr/local/bin:/usr/bin:/bin"));
}

async::awaitable<Result<Executable>> Finder::find(std::stop_token stop) {
  if (settings_.python) co_return co_await find_by_python(stop);
  co_return co_await find_in_path(stop);
}

async::awaitable<Result<Executable>> Finder::find_by_python(std::stop_token stop) {
  const auto python = program_of(*settings_.python);
  if (!python) {
    co_return fail(
        ErrorCode::not_found,
        fmt::format("WERK_VLLM_PYTHON names {}, which is no program", *settings_.python));
  }
  if (found_at_ == *python) co_return found_;
  Result<std::string> version = co_await version_in(*python, stop);
  if (!version) {
    if (version.error().code == ErrorCode::cancelled) co_return pass_on(version);
    co_return fail(ErrorCode::not_found, fmt::format("WERK_VLLM_PYTHON names {}, which {}", *python,
                                                     version.error().message));
  }
  found_ = Executable{*python, {"-m", "vllm.entrypoints.cli.main"}, std::move(*version)};
  const fs::path script = fs::path(*python).parent_path() / "vllm";
  std::error_code error;
  // As its users start it; without one the module is the same.
  if (fs::is_regular_file(script, error)) found_.first_words = {script.string()};
  found_at_ = python;
  co_return found_;
}

async::awaitable<Result<Executable>> Finder::find_in_path(std::stop_token stop) {
  const auto program = program_of("vllm");
  if (!program) {
    co_return fail(ErrorCode::not_found,
                   "there is no vllm in PATH; WERK_VLLM_PYTHON names the python of an environment "
                   "that holds it");
  }
  if (found_at_ == *program) co_return found_;
  Executable found{*program, {}, {}};
  if (const auto python = python_of_script(*program)) {
    Result<std::string> version = co_await version_in(*python, stop);
    if (version) found.version = std::move(*version);
    if (!version && version.error().code == ErrorCode::cancelled) co_return pass_on(version);
  }
  found_ = std::move(found);
  found_at_ = program;
  co_return found_;
}

async::awaitable<Result<std::string>> Finder::version_in(std::string python, std::stop_token stop) {
  owned::PackageQuestion question{std::move(python), "vllm", settings_.environment};
  co_return co_await owned::package_version(children_, clock_, std::move(question), stop);
}

}  // namespace werk::engine::vllm
