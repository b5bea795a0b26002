#include "werk/engine/owned/python_package.hpp"

#include <fmt/format.h>

#include "werk/base/text.hpp"
#include "werk/process/captured.hpp"

namespace werk::engine::owned {
namespace {

constexpr std::chrono::seconds kLimit{20};
constexpr std::size_t kOutputBytesMax = 16 * 1024;

std::string last_line(std::string_view text) {
  text = trim(text);
  const std::size_t at = text.rfind('\n');
  return printable(at == std::string_view::npos ? text : text.substr(at + 1));
}

}  // namespace

async::awaitable<Result<std::string>> package_version(process::Children& children,
                                                      async::Clock& clock, PackageQuestion question,
                                                      std::stop_token stop) {
  process::Command command;
  command.program = std::move(question.python);
  command.arguments = {"-I", "-c", std::string(kVersionQuestion), question.package};
  command.environment = std::move(question.environment);
  command.pipes = process::Pipes::two;
  auto run = co_await process::run_captured(children, clock, std::move(command), kLimit,
                                            kOutputBytesMax, stop);
  if (!run) co_return pass_on(run);
  if (run->status.clean()) co_return std::string(trim(run->out));
  const bool lacks = run->err.find("PackageNotFoundError") != std::string::npos;
  co_return fail(
      ErrorCode::not_found,
      lacks ? fmt::format("lacks {}", question.package)
            : fmt::format("did not run ({}): {}", run->status.text(), last_line(run->err)));
}

}  // namespace werk::engine::owned
