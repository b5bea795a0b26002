#include "werk/process/linux.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/close_range.h>
#include <poll.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <fstream>
#include <iterator>
#include <set>

#include "werk/base/assert.hpp"
#include "werk/process/child.hpp"
#include "werk/process/cpu_quota.hpp"
#include "werk/process/linux_group.hpp"

namespace werk::process::os {

namespace {

enum class Step : int { limit, files, folder, program };

// What the child tells through the close-on-exec pipe when it can't become the program.
struct Failure {
  Step step;
  int error;
};

struct Move {
  int from;
  int to;
};

// All that the child needs, made before the fork: after it only async-signal-safe calls are
// allowed.
struct Plan {
  const char* path = nullptr;
  const char* folder = nullptr;
  std::vector<char*> arguments;
  std::vector<char*> environment;
  std::vector<Move> moves;
  int first_free = 3;  // above every number the child wants
  int failure_pipe = -1;
  pid_t parent = 0;
  const rlimit* limit = nullptr;
};

[[noreturn]] void give_up(int pipe, Step step) {
  const Failure failure{step, errno};
  // Nothing can be done if even this fails: the parent then sees an exit status of 127.
  [[maybe_unused]] const ssize_t written = ::write(pipe, &failure, sizeof failure);
  ::_exit(127);
}

void reset_signals() {
  struct sigaction standard {};
  standard.sa_handler = SIG_DFL;
  for (int number = 1; number < NSIG; ++number) ::sigaction(number, &standard, nullptr);
  sigset_t none;
  ::sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
}

// Everything is first copied above all wanted numbers, so that no move destroys another's source;
// the rest is marked to be closed by exec, the copies among it.
void place_files(Plan& plan) {
  plan.failure_pipe = ::fcntl(plan.failure_pipe, F_DUPFD_CLOEXEC, plan.first_free);
  if (plan.failure_pipe < 0) ::_exit(127);
  for (Move& move : plan.moves) {
    move.from = ::fcntl(move.from, F_DUPFD_CLOEXEC, plan.first_free);
    if (move.from < 0) give_up(plan.failure_pipe, Step::files);
  }
  if (::close_range(0, ~0U, CLOSE_RANGE_CLOEXEC) != 0) give_up(plan.failure_pipe, Step::files);
  for (const Move& move : plan.moves) {
    if (::dup2(move.from, move.to) < 0) give_up(plan.failure_pipe, Step::files);
  }
}

[[noreturn]] void become_program(Plan& plan) {
  ::setpgid(0, 0);
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  // The parent may have died before the line above; then nobody would tell.
  if (::getppid() != plan.parent) ::_exit(127);
  reset_signals();
  place_files(plan);
  if (plan.limit != nullptr && ::setrlimit(RLIMIT_NOFILE, plan.limit) != 0) {
    give_up(plan.failure_pipe, Step::limit);
  }
  if (plan.folder != nullptr && ::chdir(plan.folder) != 0) {
    give_up(plan.failure_pipe, Step::folder);
  }
  ::execve(plan.path, plan.arguments.data(), plan.environment.data());
  give_up(plan.failure_pipe, Step::program);
}

Error describe(const Failure& failure, const Command& command) {
  const char* reason = std::strerror(failure.error);
  const bool missing = failure.error == ENOENT || failure.error == ENOTDIR;
  const ErrorCode code = missing ? ErrorCode::not_found : ErrorCode::io;
  switch (failure.step) {
    case Step::folder:
      return {code, fmt::format("cannot start '{}' in folder '{}': {}", command.program,
                                command.directory, reason)};
    case Step::files:
      return {ErrorCode::io,
              fmt::format("cannot give '{}' its files: {}", command.program, reason)};
    case Step::limit:
      return {ErrorCode::io, fmt::format("cannot set the limit of open files for '{}': {}",
                                         command.program, reason)};
    case Step::program: break;
  }
  return {code, fmt::format("cannot start '{}': {}", command.program, reason)};
}

struct Pipe {
  Descriptor reader;
  Descriptor writer;
};

Result<Pipe> make_pipe() {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) {
    return fail(ErrorCode::io, fmt::format("cannot make a pipe: {}", std::strerror(errno)));
  }
  return Pipe{Descriptor(ends[0]), Descriptor(ends[1])};
}

// The words stay the Command's; exec takes them without const for historical reasons only.
std::vector<char*> words_of(const std::vector<std::string>& texts) {
  std::vector<char*> words;
  words.reserve(texts.size() + 2);
  for (const std::string& text : texts) words.push_back(const_cast<char*>(text.c_str()));
  words.push_back(nullptr);
  return words;
}

Plan make_plan(const std::string& path, const Command& command, const Files& files) {
  Plan plan;
  plan.path = path.c_str();
  plan.folder = command.directory.empty() ? nullptr : command.directory.c_str();
  plan.arguments = words_of(command.arguments);
  plan.arguments.insert(plan.arguments.begin(), const_cast<char*>(command.program.c_str()));
  plan.environment = words_of(command.environment);
  const Descriptor& errors = files.err_writer ? files.err_writer : files.out_writer;
  plan.moves = {{files.null_reader.get(), 0}, {files.out_writer.get(), 1}, {errors.get(), 2}};
  for (const auto& [ours, theirs] : command.descriptors) {
    std::erase_if(plan.moves, [theirs](const Move& move) { return move.to == theirs; });
    plan.moves.push_back({ours, theirs});
    plan.first_free = std::max(plan.first_free, theirs + 1);
  }
  plan.parent = ::getpid();
  return plan;
}

// Blocks for as long as the child needs to reach exec: a millisecond.
std::optional<Failure> read_failure(int pipe) {
  Failure failure{};
  while (true) {
    const ssize_t count = ::read(pipe, &failure, sizeof failure);
    if (count < 0 && errno == EINTR) continue;
    if (count == static_cast<ssize_t>(sizeof failure)) return failure;
    return std::nullopt;
  }
}

// No signal may reach the child before its actions are reset: a handler of ours would run in it and
// write into files it shares with us.
template <class Become>
pid_t fork_with_signals_blocked(Become become) {
  sigset_t all;
  sigset_t before;
  ::sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, &before);
  const pid_t pid = ::fork();
  if (pid == 0) become();
  const int error = errno;
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  errno = error;
  return pid;
}

// Waits for the other end of its pipe, which closes with the last process that holds it. The kernel
// has killed the leader then; what is left of its group goes here.
[[noreturn]] void guard(int line, pid_t group) {
  // A folder that is used can't be unmounted.
  [[maybe_unused]] const int moved = ::chdir("/");
  ::setsid();
  ::prctl(PR_SET_NAME, "werk-guardian");
  ::close_range(static_cast<unsigned>(line) + 1, ~0U, 0);
  if (line > 0) ::close_range(0, static_cast<unsigned>(line) - 1, 0);
  char byte = 0;
  while (::read(line, &byte, 1) < 0 && errno == EINTR) {
  }
  SharedFiles shared;
  shared.note(group);
  kill_all_but_trackers(group);
  wait_for_group_end(group, kTrackerGrace);
  ::kill(-group, SIGKILL);
  constexpr std::chrono::seconds kLimit{10};
  wait_for_group_end(group, kLimit);
  shared.remove_left();
  ::_exit(0);
}

Result<Guardian> start_guardian(pid_t group) {
  auto pipe = make_pipe();
  if (!pipe) return pass_on(pipe);
  Guardian guardian;
  guardian.pid = fork_with_signals_blocked([&] { guard(pipe->reader.get(), group); });
  if (guardian.pid < 0) {
    return fail(ErrorCode::io,
                fmt::format("cannot start a guardian process: {}", std::strerror(errno)));
  }
  guardian.line = std::move(pipe->writer);
  return guardian;
}

ExitStatus status_of(const siginfo_t& info) {
  ExitStatus status;
  if (info.si_code == CLD_EXITED) {
    status.code = info.si_status;
  } else {
    status.signal = info.si_status;
    status.core_dumped = info.si_code == CLD_DUMPED;
  }
  return status;
}

// Another waiter in this process took the status: the end is certain, its kind is not.
constexpr ExitStatus kUnknownStatus{.code = 255};

}  // namespace

Result<Files> open_files(const Command& command) {
  Files files;
  files.null_reader = Descriptor(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  if (!files.null_reader) {
    return fail(ErrorCode::io, fmt::format("cannot open /dev/null: {}", std::strerror(errno)));
  }
  auto out = make_pipe();
  if (!out) return pass_on(out);
  files.out_writer = std::move(out->writer);
  files.out_reader = std::move(out->reader);
  if (command.pipes == Pipes::two) {
    auto err = make_pipe();
    if (!err) return pass_on(err);
    files.err_writer = std::move(err->writer);
    files.err_reader = std::move(err->reader);
    ::fcntl(files.err_reader.get(), F_SETFL, O_NONBLOCK);
  }
  ::fcntl(files.out_reader.get(), F_SETFL, O_NONBLOCK);
  return files;
}

Result<Launched> launch(const std::string& path, const Command& command, Files& files,
                        std::optional<std::uint64_t> descriptor_limit) {
  WERK_ASSERT(::syscall(SYS_gettid) == ::getpid());  // the parent-death signal follows the thread
  auto failures = make_pipe();
  if (!failures) return pass_on(failures);
  Plan plan = make_plan(path, command, files);
  plan.failure_pipe = failures->writer.get();
  rlimit limit{};
  if (descriptor_limit && ::getrlimit(RLIMIT_NOFILE, &limit) == 0) {
    limit.rlim_cur = std::min<rlim_t>(*descriptor_limit, limit.rlim_max);
    plan.limit = &limit;
  }

  const pid_t pid = fork_with_signals_blocked([&plan] { become_program(plan); });
  if (pid < 0) {
    return fail(ErrorCode::io, fmt::format("cannot start a process for '{}': {}", command.program,
                                           std::strerror(errno)));
  }
  ::setpgid(pid, pid);  // here too, so that the group exists whichever of us is first
  failures->writer.close();
  files.null_reader.close();
  files.out_writer.close();
  files.err_writer.close();
  Launched launched{pid, open_process(pid), {}};
  const int pidfd_error = errno;
  const std::optional<Failure> failure = read_failure(failures->reader.get());
  if (failure) {
    ::waitpid(pid, nullptr, 0);
    return fail(describe(*failure, command));
  }
  if (!launched.process) {
    ::kill(-pid, SIGKILL);
    ::waitpid(pid, nullptr, 0);
    return fail(ErrorCode::io, fmt::format("cannot watch the process of '{}': {}", command.program,
                                           std::strerror(pidfd_error)));
  }
  if (command.guard == Guard::group) {
    auto guardian = start_guardian(pid);
    if (!guardian) {
      ::kill(-pid, SIGKILL);
      ::waitpid(pid, nullptr, 0);
      return pass_on(guardian);
    }
    launched.guardian = std::move(*guardian);
  }
  return launched;
}

void dismiss(Guardian& guardian) {
  if (guardian.pid < 0) return;
  ::kill(guardian.pid, SIGKILL);
  ::waitpid(guardian.pid, nullptr, 0);
  guardian = {};
}

std::optional<ExitStatus> look(int process) {
  siginfo_t info{};
  while (::waitid(P_PIDFD, static_cast<id_t>(process), &info, WEXITED | WNOWAIT | WNOHANG) != 0) {
    if (errno != EINTR) return kUnknownStatus;
  }
  if (info.si_pid == 0) return std::nullopt;
  return status_of(info);
}

// By poll, since waiting on a process descriptor that the loop made non-blocking doesn't block.
ExitStatus wait_for_end(int process) {
  pollfd ended{process, POLLIN, 0};
  while (::poll(&ended, 1, -1) < 0 && errno == EINTR) {
  }
  return look(process).value_or(kUnknownStatus);
}

void reap(int process) {
  siginfo_t info{};
  while (::waitid(P_PIDFD, static_cast<id_t>(process), &info, WEXITED) != 0 && errno == EINTR) {
  }
}

std::string signal_name(int number) {
  const char* name = ::sigabbrev_np(number);
  return name != nullptr ? fmt::format("SIG{}", name) : fmt::format("signal {}", number);
}

bool lock_file(int file) {
  struct flock lock {};
  lock.l_type = F_WRLCK;
  lock.l_whence = SEEK_SET;
  return ::fcntl(file, F_OFD_SETLK, &lock) == 0;
}

bool is_locked_by_other(int file) {
  struct flock lock {};
  lock.l_type = F_WRLCK;
  lock.l_whence = SEEK_SET;
  return ::fcntl(file, F_OFD_GETLK, &lock) == 0 && lock.l_type != F_UNLCK;
}

std::size_t usable_cores() {
  cpu_set_t allowed;
  CPU_ZERO(&allowed);
  if (::sched_getaffinity(0, sizeof(allowed), &allowed) != 0) return 1;
  std::set<std::string> cores;
  for (int number = 0; number < CPU_SETSIZE; ++number) {
    if (!CPU_ISSET(number, &allowed)) continue;
    // Threads of one core show the same list.
    std::ifstream siblings(
        fmt::format("/sys/devices/system/cpu/cpu{}/topology/thread_siblings_list", number));
    std::string list;
    std::getline(siblings, list);
    cores.insert(list.empty() ? fmt::to_string(number) : list);
  }
  const std::size_t here = std::max<std::size_t>(cores.size(), 1);
  std::ifstream own("/proc/self/cgroup");
  const std::string groups{std::istreambuf_iterator<char>(own), {}};
  return std::min(here, quota_cores("/sys/fs/cgroup", groups).value_or(here));
}

}  // namespace werk::process::os
