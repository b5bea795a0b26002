// fake_llama_server: a program with llama-server's command line and routes that does what a test
// tells it. README.md in this folder says how.
#include <sys/stat.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <string_view>
#include <thread>

#include "tests/support/fake_engine/fake.hpp"
#include "tests/support/fake_engine/vllm.hpp"

namespace werk::fake {
namespace {

std::string control_path(const Settings& settings) {
  const char* path = std::getenv("FAKE_ENGINE_CONTROL");
  return path != nullptr ? path : settings.control;
}

// The variables that could change an engine or give a secret away, so that tests see what came
// through.
json::object told_environment() {
  json::object told;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string_view text(*entry);
    const std::size_t end = text.find('=');
    for (const std::string_view prefix : {"WERK", "LLAMA", "HF_", "GGML", "OMP", "VLLM"}) {
      if (text.starts_with(prefix)) told[text.substr(0, end)] = text.substr(end + 1);
    }
  }
  return told;
}

int fail_to_load(const std::string& model) {
  std::fprintf(stderr, "0.00.006.434 E srv    load_model: failed to load model, '%s'\n",
               model.c_str());
  std::fprintf(stderr, "0.00.006.777 E srv  llama_server: exiting due to model loading error\n");
  return 1;
}

bool is_file(const std::string& path) {
  struct stat info {};
  return ::stat(path.c_str(), &info) == 0 && S_ISREG(info.st_mode) && info.st_size > 0;
}

int run(const std::string& program, const std::vector<std::string>& words) {
  const bool vllm = is_vllm(program);
  const CommandLine line = vllm ? read_vllm_line(words) : read_command_line(words);
  const Settings settings = load_settings(program, line.model, line.alias);
  const std::string unknown = settings.any_flag || vllm ? "" : first_unknown(words, settings);
  if (!unknown.empty()) {
    std::fprintf(stderr, "error: invalid argument: %s\n", unknown.c_str());
    return 1;
  }
  if (line.version) return std::fputs(version_text(settings).c_str(), stderr), 0;
  if (line.help) return std::fputs(help_text(settings).c_str(), stdout), 0;
  if (line.list_devices) return std::fputs(devices_text(settings).c_str(), stdout), 0;

  // Every later thread inherits the mask; one waits for the signals.
  sigset_t signals;
  ::sigemptyset(&signals);
  ::sigaddset(&signals, SIGTERM);
  ::sigaddset(&signals, SIGINT);
  ::pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  // Before the channel, whose end must tell that of the front alone.
  const pid_t core = vllm && settings.core ? start_core() : -1;
  Channel channel(control_path(settings));
  json::array arguments(words.begin(), words.end());
  channel.tell("spawned", {{"pid", ::getpid()},
                           {"program", program},
                           {"argv", std::move(arguments)},
                           {"env", told_environment()},
                           {"model", line.model},
                           {"alias", line.alias},
                           {"core", core}});
  Fake fake(line, settings, channel);
  channel.listen([&fake](const json::object& command) { fake.obey(command); });
  std::thread([&fake, signals] {
    for (int number = 0; ::sigwait(&signals, &number) == 0;) fake.terminate();
  }).detach();
  if (core > 0) std::thread([&fake, core] { fake.attend_core(core); }).detach();
  if (settings.start == "exit") fake.end(settings.exit_code, settings.stderr_text);
  if (settings.check_model && !is_file(line.model)) return fail_to_load(line.model);
  if (settings.start == "no_listen") {
    while (true) ::pause();
  }
  // A vLLM opens its socket only once it is ready.
  if (vllm && settings.start == "hold") fake.wait_until_ready();
  const std::optional<Listener> listener = listen_on(line.host, line.port);
  if (!listener) {
    std::fprintf(stderr, "0.00.002.854 E srv         start: couldn't bind HTTP server socket, "
                         "hostname: %s, port: %d\n", line.host.c_str(), line.port);
    return 1;
  }
  fake.serve(*listener);
}

}  // namespace
}  // namespace werk::fake

int main(int count, char** words) {
  return werk::fake::run(words[0], std::vector<std::string>(words + 1, words + count));
}
