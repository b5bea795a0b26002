#include "werk/engine/worker/interpreter.hpp"

#include <fmt/format.h>

#include "werk/base/text.hpp"
#include "werk/process/captured.hpp"
#include "werk/process/program.hpp"

namespace werk::engine::worker {
namespace {

constexpr std::chrono::seconds kLimit{20};
constexpr std::size_t kOutputBytesMax = 16 * 1024;

std::string last_line(std::string_view text) {
  text = trim(text);
  const std::size_t at = text.rfind('\n');
  return printable(at == std::string_view::npos ? text : text.substr(at + 1));
}

}  // namespace

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
  process::Command command;
  command.program = std::move(path);
  command.arguments = {"-I", "-c", std::string(kVersionQuestion), std::string(kind_.package)};
  command.environment = settings_.environment;
  command.pipes = process::Pipes::two;
  auto run = co_await process::run_captured(children_, clock_, std::move(command), kLimit,
                                            kOutputBytesMax, stop);
  if (!run) co_return pass_on(run);
  if (run->status.clean()) co_return std::string(trim(run->out));
  const bool lacks = run->err.find("PackageNotFoundError") != std::string::npos;
  co_return fail(
      ErrorCode::not_found,
      lacks ? fmt::format("lacks {}", kind_.package)
            : fmt::format("did not run ({}): {}", run->status.text(), last_line(run->err)));
}

}  // namespace werk::engine::worker
