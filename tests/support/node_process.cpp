#include "tests/support/node_process.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <cstring>
#include <fstream>
#include <stdexcept>

#include "tests/support/temporary_folder.hpp"
#include "werk/base/text.hpp"
#include "werk/model/store.hpp"

extern char** environ;

namespace werk::test {
namespace {

constexpr std::chrono::seconds kWatchdogTime{60};

bool is_ours(std::string_view entry) {
  for (const std::string_view ours :
       {"WERK_", "LLAMA_", "HF_", "FAKE_ENGINE_", "SSL_CERT_", "CURL_CA_BUNDLE="}) {
    if (entry.starts_with(ours)) return true;
  }
  return to_lower(entry.substr(0, entry.find('='))).ends_with("_proxy");
}

std::vector<char*> pointers(std::vector<std::string>& texts) {
  std::vector<char*> list;
  for (std::string& text : texts) list.push_back(text.data());
  list.push_back(nullptr);
  return list;
}

struct Pipe {
  int read_end = -1;
  int write_end = -1;
  Pipe() {
    std::array<int, 2> ends{};
    if (::pipe2(ends.data(), O_CLOEXEC) != 0) throw std::runtime_error("no pipe");
    read_end = ends[0];
    write_end = ends[1];
  }
};

pid_t start(std::vector<std::string> words, std::vector<std::string> environment, int out,
            int err) {
  words.insert(words.begin(), NodeProcess::program());
  const std::vector<char*> argv = pointers(words);
  const std::vector<char*> envp = pointers(environment);
  const pid_t pid = ::fork();
  if (pid != 0) return pid;
  ::dup2(out, STDOUT_FILENO);
  ::dup2(err, STDERR_FILENO);
  ::execve(argv[0], argv.data(), envp.data());
  ::_exit(127);
}

std::string read_all(int file) {
  std::string text;
  std::array<char, 4096> buffer;
  while (true) {
    const ssize_t count = ::read(file, buffer.data(), buffer.size());
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) break;
    text.append(buffer.data(), static_cast<std::size_t>(count));
  }
  ::close(file);
  return text;
}

int status_of(int wait_status) {
  return WIFEXITED(wait_status) ? WEXITSTATUS(wait_status) : 128 + WTERMSIG(wait_status);
}

}  // namespace

void install_tiny_models(const std::filesystem::path& home, const std::vector<TestModel>& models) {
  const TemporaryFolder scratch;
  const model::Store store(home);
  for (const TestModel& model : models) {
    TinyGgufOptions options = model.options;
    // Equal files would share one runtime: each model gets weights of its own.
    if (options.name == TinyGgufOptions{}.name) options.name = model.id;
    const std::filesystem::path file = scratch / "model.gguf";
    if (!write_tiny_gguf(file, options)) throw std::runtime_error("can't write a model");
    model::ImportRequest request;
    request.path = file;
    request.id = model.id;
    const auto imported = store.import_file(request);
    if (!imported) throw std::runtime_error(imported.error().message);
  }
}

// Sanitizers' options and the like pass; settings of the user's own node do not.
std::vector<std::string> clean_environment(const std::vector<std::string>& more) {
  std::vector<std::string> all;
  const auto is_replaced = [&](std::string_view entry) {
    const std::string_view name = entry.substr(0, entry.find('=') + 1);
    return std::ranges::any_of(more, [&](const auto& one) { return one.starts_with(name); });
  };
  for (char** entry = environ; *entry != nullptr; ++entry) {
    if (!is_ours(*entry) && !is_replaced(*entry)) all.emplace_back(*entry);
  }
  all.insert(all.end(), more.begin(), more.end());
  return all;
}

std::string NodeProcess::program() { return WERK_PROGRAM; }

NodeProcess::NodeProcess(Settings settings) {
  std::vector<std::string> words = std::move(settings.command);
  words.insert(words.end(), settings.arguments.begin(), settings.arguments.end());
  std::vector<std::string> environment = clean_environment(settings.environment);
  environment.push_back("WERK_HOME=" + settings.home.string());
  const Pipe log;
  pid_ = start(std::move(words), std::move(environment), log.write_end, log.write_end);
  ::close(log.write_end);
  reader_ = std::thread([this, file = log.read_end] { read_log(file); });
}

NodeProcess::~NodeProcess() {
  if (exit_status_ < 0) {
    ::kill(pid_, SIGKILL);
    int status = 0;
    ::waitpid(pid_, &status, 0);
  }
  // Whoever inherited the log's pipe has died with the node.
  reader_.join();
}

void NodeProcess::read_log(int file) {
  std::array<char, 4096> buffer;
  while (true) {
    const ssize_t count = ::read(file, buffer.data(), buffer.size());
    if (count < 0 && errno == EINTR) continue;
    const std::scoped_lock lock(mutex_);
    if (count > 0) log_.append(buffer.data(), static_cast<std::size_t>(count));
    if (count <= 0) log_ended_ = true;
    changed_.notify_all();
    if (count <= 0) break;
  }
  ::close(file);
}

std::string NodeProcess::wait_for_line(std::string_view text) {
  std::unique_lock lock(mutex_);
  std::size_t at = std::string::npos;
  const auto complete = [&] {
    at = log_.find(text);
    const bool found = at != std::string::npos && log_.find('\n', at) != std::string::npos;
    return found || log_ended_;
  };
  if (!changed_.wait_for(lock, kWatchdogTime, complete) || at == std::string::npos) {
    throw std::runtime_error("the node never said \"" + std::string(text) + "\":\n" + log_);
  }
  const std::size_t begin = log_.rfind('\n', at) + 1;
  return log_.substr(begin, log_.find('\n', at) - begin);
}

std::uint16_t NodeProcess::port() {
  const std::string line = wait_for_line(" at http://");
  return static_cast<std::uint16_t>(std::stoul(line.substr(line.rfind(':') + 1)));
}

void NodeProcess::signal(int number) const { ::kill(pid_, number); }

int NodeProcess::wait_exit() {
  if (exit_status_ >= 0) return exit_status_;
  const int handle = static_cast<int>(::syscall(SYS_pidfd_open, pid_, 0));
  pollfd watched{handle, POLLIN, 0};
  const auto limit = std::chrono::milliseconds(kWatchdogTime).count();
  const int ready = ::poll(&watched, 1, static_cast<int>(limit));
  ::close(handle);
  if (ready <= 0) throw std::runtime_error("the node did not end:\n" + log());
  int status = 0;
  ::waitpid(pid_, &status, 0);
  exit_status_ = status_of(status);
  std::unique_lock lock(mutex_);
  changed_.wait_for(lock, kWatchdogTime, [this] { return log_ended_; });
  return exit_status_;
}

std::string NodeProcess::log() const {
  const std::scoped_lock lock(mutex_);
  return log_;
}

CommandRun run_werk(const std::vector<std::string>& words,
                    const std::vector<std::string>& environment) {
  const Pipe out;
  const Pipe err;
  const pid_t pid = start(words, clean_environment(environment), out.write_end, err.write_end);
  ::close(out.write_end);
  ::close(err.write_end);
  CommandRun run;
  std::thread errors([&] { run.err = read_all(err.read_end); });
  run.out = read_all(out.read_end);
  errors.join();
  int status = 0;
  ::waitpid(pid, &status, 0);
  run.status = status_of(status);
  return run;
}

}  // namespace werk::test
