#include "werk/process/captured.hpp"

#include <fmt/format.h>

#include "werk/base/text.hpp"

namespace werk::process {

namespace {

void collect(Captured& captured, Stream stream, std::string_view bytes, std::size_t bytes_max) {
  std::string& text = stream == Stream::out ? captured.out : captured.err;
  const std::size_t room = bytes_max - text.size();
  if (bytes.size() > room) captured.cut = true;
  text.append(bytes.substr(0, room));
}

Error run_out_of_time(const std::string& line, async::Duration limit) {
  const auto seconds = std::chrono::duration<double>(limit).count();
  return Error{ErrorCode::engine_timeout,
               fmt::format("'{}' did not end within {:g} s", line, seconds), Origin::engine};
}

}  // namespace

async::awaitable<Result<Captured>> run_captured(Children& children, async::Clock& clock,
                                                Command command, async::Duration limit,
                                                std::size_t output_bytes_max,
                                                std::stop_token stop) {
  if (stop.stop_requested()) co_return fail(ErrorCode::cancelled, "stopped before it ran");
  Captured captured;
  command.pipes = Pipes::two;
  command.on_output = [&captured, output_bytes_max](Stream stream, std::string_view bytes) {
    collect(captured, stream, bytes, output_bytes_max);
  };
  std::vector<std::string> words = command.arguments;
  words.insert(words.begin(), command.program);
  auto child = children.spawn(std::move(command));
  if (!child) co_return pass_on(child);

  async::Deadline deadline(clock, limit, stop);
  const bool ended = co_await (*child)->exited().wait(deadline.token());
  if (!ended) {
    const Grace at_once(async::Duration::zero());
    co_await (*child)->stop(at_once);
    if (deadline.expired()) co_return fail(run_out_of_time(shell_line(words), limit));
    co_return fail(ErrorCode::cancelled, "stopped while it ran");
  }
  captured.status = *(*child)->status();
  co_return captured;
}

}  // namespace werk::process
