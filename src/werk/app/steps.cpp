#include "werk/app/steps.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <deque>

#include "werk/app/terminal.hpp"
#include "werk/async/task_group.hpp"
#include "werk/base/digest.hpp"
#include "werk/base/text.hpp"

namespace werk::app {
namespace {

constexpr std::size_t kCapturedBytesMax = 1024 * 1024;
constexpr std::size_t kLastLinesMax = 12;
constexpr std::size_t kReadBytes = 1024 * 1024;

async::awaitable<void> run_into(process::Children& children, async::Clock& clock,
                                process::Command command, async::Duration limit,
                                std::stop_token stop, Result<process::Captured>& out) {
  out = co_await process::run_captured(children, clock, std::move(command), limit,
                                       kCapturedBytesMax, stop);
}

Error io_error(std::string_view what, const std::filesystem::path& path) {
  return Error{ErrorCode::io, fmt::format("{} {}: {}", what, path.string(), std::strerror(errno))};
}

}  // namespace

Say say_to(std::FILE* file) {
  const bool is_terminal = can_rewrite(fileno(file));
  // Shared by the copies of the function: whether a progress line stands there unfinished.
  const auto open_line = std::make_shared<bool>(false);
  return [file, is_terminal, open_line](Note note, std::string_view text) {
    if (note == Note::progress && !is_terminal) return;
    if (*open_line) fmt::print(file, "\r\033[K");
    fmt::print(file, "{}", text);
    *open_line = note == Note::progress;
    if (!*open_line) fmt::print(file, "\n");
    std::fflush(file);
  };
}

StepRunner::StepRunner(const std::filesystem::path& log_file)
    : clock_(loop_.executor()),
      children_(loop_.executor(), clock_),
      signals_(loop_.executor(), [this](int) { stop_.request_stop(); }) {
  if (!log_file.empty()) log_.open(log_file, std::ios::trunc);
}

Result<process::Captured> StepRunner::run_to_end(Step step) {
  std::vector<std::string> words = step.arguments;
  words.insert(words.begin(), step.program);
  const std::string line = shell_line(words);
  log_ << "$ " << line << "\n" << std::flush;

  std::deque<std::string> last;
  process::Command command;
  command.program = step.program;
  command.arguments = std::move(step.arguments);
  command.environment = std::move(step.environment);
  command.directory = step.folder.string();
  command.on_line = [&](std::string_view text) {
    log_ << text << '\n';
    if (step.on_line) step.on_line(text);
    if (!trim(text).empty()) last.emplace_back(printable(text));
    if (last.size() > kLastLinesMax) last.pop_front();
  };
  // A signal that came since the last step is seen now.
  loop_.poll();
  Result<process::Captured> result = fail(ErrorCode::internal, "the step did not run");
  async::TaskGroup group(loop_.executor());
  group.spawn(
      run_into(children_, clock_, std::move(command), step.limit, stop_.get_token(), result));
  loop_.run_until([&group] { return group.running() == 0; });
  log_.flush();
  if (!result) return result;
  if (!result->status.clean()) {
    return fail(ErrorCode::io, fmt::format("'{}' failed ({}){}{}", line, result->status.text(),
                                           last.empty() ? "" : ":\n  ", fmt::join(last, "\n  ")));
  }
  return result;
}

Status StepRunner::run(Step step) {
  auto ended = run_to_end(std::move(step));
  if (!ended) return pass_on(ended);
  return {};
}

Result<std::string> StepRunner::capture(Step step) {
  auto ended = run_to_end(std::move(step));
  if (!ended) return pass_on(ended);
  return ended->out + "\n" + ended->err;
}

Result<FolderLock> FolderLock::take(const std::filesystem::path& folder, const Say& say) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error) {
    return fail(ErrorCode::io,
                fmt::format("cannot make the folder {}: {}", folder.string(), error.message()));
  }
  const std::filesystem::path file = folder / ".lock";
  process::Descriptor descriptor(open(file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  if (!descriptor) return fail(io_error("cannot write", file));
  if (flock(descriptor.get(), LOCK_EX | LOCK_NB) != 0) {
    say(Note::line, "waiting for another werk that works in the same folder");
    while (flock(descriptor.get(), LOCK_EX) != 0) {
      if (errno != EINTR) return fail(io_error("cannot lock", file));
    }
  }
  return FolderLock(std::move(descriptor));
}

Result<ScratchFolder> ScratchFolder::make(const std::filesystem::path& parent,
                                          std::string_view stem) {
  const std::string head = fmt::format(".{}-", stem);
  std::error_code error;
  for (std::filesystem::directory_iterator it(parent, error), end; !error && it != end;
       it.increment(error)) {
    std::error_code ignored;
    if (it->path().filename().string().starts_with(head)) {
      std::filesystem::remove_all(it->path(), ignored);
    }
  }
  std::string path = (parent / (head + "XXXXXX")).string();
  if (mkdtemp(path.data()) == nullptr) return fail(io_error("cannot make a folder in", parent));
  return ScratchFolder(path);
}

ScratchFolder::~ScratchFolder() {
  std::error_code ignored;
  if (path_ != nullptr) std::filesystem::remove_all(*path_, ignored);
}

Result<std::string> file_digest(const std::filesystem::path& file) {
  std::ifstream in(file, std::ios::binary);
  if (!in) return fail(io_error("cannot read", file));
  Sha256 digest;
  std::string piece(kReadBytes, '\0');
  while (in) {
    in.read(piece.data(), static_cast<std::streamsize>(piece.size()));
    digest.update(std::string_view(piece).substr(0, static_cast<std::size_t>(in.gcount())));
  }
  if (in.bad()) return fail(io_error("cannot read", file));
  return digest.finish();
}

}  // namespace werk::app
