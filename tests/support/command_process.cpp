#include "tests/support/command_process.hpp"

#include <fcntl.h>
#include <pty.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <stdexcept>

#include "tests/support/node_process.hpp"
#include "tests/support/spawned.hpp"

namespace werk::test {
namespace {

constexpr std::chrono::seconds kWatchdog{60};

}  // namespace

CommandProcess::CommandProcess(Settings settings) {
  std::vector<std::string> words = std::move(settings.words);
  words.insert(words.begin(), settings.program.empty() ? NodeProcess::program() : settings.program);
  const bool terminal = settings.around == Around::terminal;
  const bool named = std::ranges::any_of(
      settings.environment, [](const std::string& entry) { return entry.starts_with("TERM="); });
  if (terminal && !named) settings.environment.emplace_back("TERM=xterm");
  std::vector<std::string> environment = clean_environment(settings.environment);
  const std::vector<char*> argv = pointers(words);
  const std::vector<char*> envp = pointers(environment);
  if (terminal) {
    const winsize size{24, 80, 0, 0};
    int master = -1;
    pid_ = ::forkpty(&master, nullptr, nullptr, &size);
    if (pid_ == 0) {
      std::signal(SIGINT, SIG_DFL);  // a shell's background jobs ignore it
      ::execve(argv[0], argv.data(), envp.data());
      ::_exit(127);
    }
    ::fcntl(master, F_SETFD, FD_CLOEXEC);
    input_ = ::fcntl(master, F_DUPFD_CLOEXEC, 0);
    follow(out_, master);
    return;
  }
  const auto in = settings.around == Around::pipes ? make_pipe() : std::array<int, 2>{-1, -1};
  const auto out = make_pipe();
  const auto err = make_pipe();
  pid_ = ::fork();
  if (pid_ == 0) {
    ::setpgid(0, 0);
    std::signal(SIGINT, SIG_DFL);
    const int null = ::open("/dev/null", O_RDONLY);
    ::dup2(in[0] >= 0 ? in[0] : null, STDIN_FILENO);
    ::dup2(out[1], STDOUT_FILENO);
    ::dup2(err[1], STDERR_FILENO);
    ::close(null);
    ::execve(argv[0], argv.data(), envp.data());
    ::_exit(127);
  }
  if (in[0] >= 0) ::close(in[0]);
  input_ = in[1];
  ::close(out[1]);
  ::close(err[1]);
  follow(out_, out[0]);
  follow(err_, err[0]);
}

CommandProcess::~CommandProcess() {
  if (exit_status_ < 0) {
    ::kill(-pid_, SIGKILL);  // it leads a group, whose others hold its pipes too
    int status = 0;
    ::waitpid(pid_, &status, 0);
  }
  if (input_ >= 0) ::close(input_);
  for (Stream* stream : {&out_, &err_}) {
    if (stream->reader.joinable()) stream->reader.join();
    if (stream->file >= 0) ::close(stream->file);
  }
}

void CommandProcess::follow(Stream& stream, int file) {
  stream.file = file;
  stream.ended = false;
  stream.reader = std::thread([this, &stream] { read(stream); });
}

void CommandProcess::read(Stream& stream) {
  std::array<char, 4096> buffer;
  while (true) {
    const ssize_t count = ::read(stream.file, buffer.data(), buffer.size());
    if (count < 0 && errno == EINTR) continue;
    const std::scoped_lock lock(mutex_);
    // A pty whose other side is closed says EIO.
    if (count > 0) stream.text.append(buffer.data(), static_cast<std::size_t>(count));
    if (count <= 0) stream.ended = true;
    changed_.notify_all();
    if (count <= 0) return;
  }
}

void CommandProcess::signal(int number) const { ::kill(pid_, number); }

void CommandProcess::type(std::string_view bytes) const {
  while (!bytes.empty()) {
    const ssize_t count = ::write(input_, bytes.data(), bytes.size());
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) throw std::runtime_error("nobody reads what is typed");
    bytes.remove_prefix(static_cast<std::size_t>(count));
  }
}

void CommandProcess::end_input() {
  ::close(input_);
  input_ = -1;
}

void CommandProcess::wait_for(Stream& stream, std::string_view text) {
  std::unique_lock lock(mutex_);
  std::size_t at = std::string::npos;
  const auto found = [&] {
    at = stream.text.find(text, stream.seen);
    return at != std::string::npos || stream.ended;
  };
  if (!changed_.wait_for(lock, kWatchdog, found) || at == std::string::npos) {
    throw std::runtime_error("it never printed \"" + std::string(text) + "\":\n" + out_.text +
                             "\nerrors:\n" + err_.text);
  }
  stream.seen = at + text.size();
}

void CommandProcess::wait_until(const std::function<bool(const std::string& out)>& is_wanted) {
  std::unique_lock lock(mutex_);
  bool wanted = false;
  const auto is_over = [&] {
    wanted = is_wanted(out_.text);
    return wanted || out_.ended;
  };
  if (changed_.wait_for(lock, kWatchdog, is_over) && wanted) return;
  throw std::runtime_error("it never printed what was wanted:\n" + out_.text);
}

void CommandProcess::resize(unsigned short lines, unsigned short columns) const {
  const winsize size{lines, columns, 0, 0};
  if (::ioctl(input_, TIOCSWINSZ, &size) != 0) throw std::runtime_error("no terminal to resize");
}

termios CommandProcess::terminal_modes() const {
  termios modes{};
  if (::tcgetattr(input_, &modes) != 0) throw std::runtime_error("no terminal to ask");
  return modes;
}

void CommandProcess::wait_for(std::string_view text) { wait_for(out_, text); }
void CommandProcess::wait_for_error(std::string_view text) { wait_for(err_, text); }

int CommandProcess::wait_exit() {
  if (exit_status_ >= 0) return exit_status_;
  const std::optional<int> ended = exit_within(pid_, kWatchdog);
  if (!ended) throw std::runtime_error("it did not end:\n" + out() + "\nerrors:\n" + err());
  exit_status_ = *ended;
  std::unique_lock lock(mutex_);
  changed_.wait_for(lock, kWatchdog, [this] { return out_.ended && err_.ended; });
  return exit_status_;
}

std::string CommandProcess::out() const {
  const std::scoped_lock lock(mutex_);
  return out_.text;
}

std::string CommandProcess::err() const {
  const std::scoped_lock lock(mutex_);
  return err_.text;
}

}  // namespace werk::test
