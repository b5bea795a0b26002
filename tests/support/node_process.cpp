#include "tests/support/node_process.hpp"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <cstring>
#include <fstream>
#include <stdexcept>

#include "tests/support/spawned.hpp"
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
  const auto log = make_pipe();
  pid_ = start(std::move(words), std::move(environment), log[1], log[1]);
  ::close(log[1]);
  reader_ = std::thread([this, file = log[0]] { read_log(file); });
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
  const std::optional<int> ended = exit_within(pid_, kWatchdogTime);
  if (!ended) throw std::runtime_error("the node did not end:\n" + log());
  exit_status_ = *ended;
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
  const auto out = make_pipe();
  const auto err = make_pipe();
  const pid_t pid = start(words, clean_environment(environment), out[1], err[1]);
  ::close(out[1]);
  ::close(err[1]);
  CommandRun run;
  std::thread errors([&] { run.err = read_all(err[0]); });
  run.out = read_all(out[0]);
  errors.join();
  int status = 0;
  ::waitpid(pid, &status, 0);
  run.status = exit_status_of(status);
  return run;
}

}  // namespace werk::test
