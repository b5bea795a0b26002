#include "werk/engine/vllm/finder.hpp"

#include <fmt/format.h>

#include <filesystem>
#include <fstream>

#include "werk/base/text.hpp"
#include "werk/process/captured.hpp"
#include "werk/process/program.hpp"

namespace werk::engine::vllm {
namespace {

namespace fs = std::filesystem;

constexpr std::chrono::seconds kLimit{20};
constexpr std::size_t kOutputBytesMax = 16 * 1024;
constexpr std::size_t kFirstLineBytesMax = 256;
constexpr std::string_view kVersionQuestion =
    "import importlib.metadata as m; print(m.version('vllm'))";

std::string last_line(std::string_view text) {
  text = trim(text);
  const std::size_t at = text.rfind('\n');
  return printable(at == std::string_view::npos ? text : text.substr(at + 1));
}

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
  process::Command command;
  command.program = std::move(python);
  command.arguments = {"-I", "-c", std::string(kVersionQuestion)};
  command.environment = settings_.environment;
  command.pipes = process::Pipes::two;
  auto run = co_await process::run_captured(children_, clock_, std::move(command), kLimit,
                                            kOutputBytesMax, stop);
  if (!run) co_return pass_on(run);
  if (run->status.clean()) co_return std::string(trim(run->out));
  const bool lacks = run->err.find("PackageNotFoundError") != std::string::npos;
  co_return fail(
      ErrorCode::not_found,
      lacks ? std::string("lacks vllm")
            : fmt::format("did not run ({}): {}", run->status.text(), last_line(run->err)));
}

}  // namespace werk::engine::vllm
