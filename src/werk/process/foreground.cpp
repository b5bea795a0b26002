#include "werk/process/foreground.hpp"

#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstring>

namespace werk::process {

namespace {

constexpr int kNotRun = 127;  // what a shell gives for a program that it can't run

volatile std::sig_atomic_t foreground_pid = 0;

void pass_on_signal(int number) {
  if (foreground_pid > 0) ::kill(foreground_pid, number);
}

std::vector<char*> pointers(std::vector<std::string>& texts) {
  std::vector<char*> list;
  for (std::string& text : texts) list.push_back(text.data());
  list.push_back(nullptr);
  return list;
}

}  // namespace

Error become(Foreground program) {
  program.arguments.insert(program.arguments.begin(), program.name);
  const std::vector<char*> argv = pointers(program.arguments);
  const std::vector<char*> envp = pointers(program.environment);
  ::execve(program.program.c_str(), argv.data(), envp.data());
  return {ErrorCode::io, fmt::format("{} can't be run: {}", program.program, std::strerror(errno))};
}

Result<int> run_in_foreground(Foreground program) {
  std::signal(SIGINT, SIG_IGN);
  std::signal(SIGQUIT, SIG_IGN);
  std::signal(SIGTERM, pass_on_signal);
  std::signal(SIGHUP, pass_on_signal);
  const pid_t pid = ::fork();
  if (pid == 0) {
    for (const int number : {SIGINT, SIGQUIT, SIGTERM, SIGHUP, SIGPIPE})
      std::signal(number, SIG_DFL);
    const std::string text = "werk: " + become(std::move(program)).message + "\n";
    [[maybe_unused]] const ssize_t written = ::write(STDERR_FILENO, text.data(), text.size());
    ::_exit(kNotRun);
  }
  if (pid < 0) {
    return fail(ErrorCode::io, fmt::format("cannot start a process for '{}': {}", program.program,
                                           std::strerror(errno)));
  }
  foreground_pid = pid;
  int status = 0;
  while (::waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  foreground_pid = 0;
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

}  // namespace werk::process
