#include "tests/support/piped_process.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <stdexcept>

#include "tests/support/spawned.hpp"

namespace werk::test {
namespace {

constexpr std::chrono::seconds kWatchdog{120};

// True while more may come.
bool read_into(std::string& text, int file) {
  std::array<char, 65536> buffer;
  const ssize_t count = ::read(file, buffer.data(), buffer.size());
  if (count > 0) text.append(buffer.data(), static_cast<std::size_t>(count));
  return count > 0 || (count < 0 && errno == EINTR);
}

}  // namespace

PipedProcess::PipedProcess(Settings settings) {
  std::vector<std::string> words = std::move(settings.words);
  words.insert(words.begin(), settings.program);
  const std::vector<char*> argv = pointers(words);
  const std::vector<char*> envp = pointers(settings.environment);
  const auto in = make_pipe();
  const auto out = make_pipe();
  const auto err = make_pipe();
  pid_ = ::fork();
  if (pid_ == 0) {
    ::setpgid(0, 0);
    ::dup2(in[0], STDIN_FILENO);
    ::dup2(out[1], STDOUT_FILENO);
    ::dup2(err[1], STDERR_FILENO);
    if (settings.folder.empty() || ::chdir(settings.folder.c_str()) == 0) {
      ::execve(argv[0], argv.data(), envp.data());
    }
    ::_exit(127);
  }
  ::setpgid(pid_, pid_);
  ::close(in[0]);
  ::close(out[1]);
  ::close(err[1]);
  input_ = in[1];
  out_file_ = out[0];
  err_file_ = err[0];
  stop_ = ::eventfd(0, EFD_CLOEXEC);
  // A program that has gone must not take the test with it.
  ::signal(SIGPIPE, SIG_IGN);
  reader_ = std::thread([this] { read(); });
}

PipedProcess::~PipedProcess() {
  close_input();
  ::kill(-pid_, SIGKILL);
  if (exit_status_ < 0) {
    int status = 0;
    ::waitpid(pid_, &status, 0);
  }
  // Whoever left the group may hold the pipes still.
  ::eventfd_write(stop_, 1);
  reader_.join();
  for (const int file : {out_file_, err_file_, stop_}) ::close(file);
}

void PipedProcess::read() {
  std::array<pollfd, 3> files{{{out_file_, POLLIN, 0}, {err_file_, POLLIN, 0}, {stop_, POLLIN, 0}}};
  while (files[0].fd >= 0 || files[1].fd >= 0) {
    ::poll(files.data(), files.size(), -1);
    if (files[2].revents != 0) break;
    const std::lock_guard lock(mutex_);
    if (files[0].revents != 0 && !read_into(out_, files[0].fd)) files[0].fd = -1;
    if (files[1].revents != 0 && !read_into(err_, files[1].fd)) files[1].fd = -1;
    changed_.notify_all();
  }
  const std::lock_guard lock(mutex_);
  ended_ = true;
  changed_.notify_all();
}

void PipedProcess::write(std::string_view text) {
  while (!text.empty()) {
    const ssize_t count = ::write(input_, text.data(), text.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) throw std::runtime_error("the program reads no more:\n" + err());
    text.remove_prefix(static_cast<std::size_t>(count));
  }
}

void PipedProcess::close_input() {
  if (input_ >= 0) ::close(input_);
  input_ = -1;
}

void PipedProcess::signal(int number) const { ::kill(pid_, number); }

std::string PipedProcess::next_line(std::string_view text) {
  std::unique_lock lock(mutex_);
  std::string line;
  const auto found = [&] {
    for (std::size_t end = out_.find('\n', passed_); end != std::string::npos;
         end = out_.find('\n', passed_)) {
      line = out_.substr(passed_, end - passed_);
      passed_ = end + 1;
      if (line.find(text) != std::string::npos) return true;
    }
    return false;
  };
  bool there = false;
  const auto known = [&] { return (there = found()) || ended_; };
  if (!changed_.wait_for(lock, kWatchdog, known) || !there) {
    throw std::runtime_error("the program never printed \"" + std::string(text) + "\":\n" + out_ +
                             err_);
  }
  return line;
}

void PipedProcess::wait_for_text(std::string_view text, std::chrono::seconds limit) {
  std::unique_lock lock(mutex_);
  const auto there = [&] {
    return out_.find(text) != std::string::npos || err_.find(text) != std::string::npos;
  };
  const auto known = [&] { return there() || ended_; };
  if (!changed_.wait_for(lock, limit, known) || !there()) {
    throw std::runtime_error("the program never printed \"" + std::string(text) + "\":\n" + out_ +
                             err_);
  }
}

int PipedProcess::wait_exit() {
  close_input();
  if (exit_status_ >= 0) return exit_status_;
  const std::optional<int> ended = exit_within(pid_, kWatchdog);
  if (!ended) throw std::runtime_error("the program did not end:\n" + out() + err());
  exit_status_ = *ended;
  std::unique_lock lock(mutex_);
  changed_.wait_for(lock, kWatchdog, [this] { return ended_; });
  return exit_status_;
}

std::string PipedProcess::out() const {
  const std::lock_guard lock(mutex_);
  return out_;
}

std::string PipedProcess::err() const {
  const std::lock_guard lock(mutex_);
  return err_;
}

}  // namespace werk::test
