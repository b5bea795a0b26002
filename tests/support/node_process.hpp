// NodeProcess: the real `werk serve`, started by a test as a user would, on a port the system
// chooses and with a home of the test's own. A thread drains its log. Waits are on events (a log
// line, the exit) with a watchdog that throws, which fails the test. Destroying it kills a node
// that still runs. Blocking; owned by one test.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <filesystem>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "tests/support/tiny_gguf.hpp"

namespace werk::test {

// A home with installed tiny models, for engines that are fake or real.
struct TestModel {
  std::string id;
  TinyGgufOptions options = {};
};
void install_tiny_models(const std::filesystem::path& home, const std::vector<TestModel>& models);

class NodeProcess {
 public:
  struct Settings {
    std::filesystem::path home;
    std::vector<std::string> arguments = {};    // behind the command
    std::vector<std::string> environment = {};  // on top of ours without WERK_*, LLAMA_* and HF_*
    // Another one is run to whatever end it comes to; it has no port.
    std::vector<std::string> command = {"serve", "--port", "0", "--log-level", "debug"};
  };

  explicit NodeProcess(Settings settings);
  NodeProcess(const NodeProcess&) = delete;
  NodeProcess& operator=(const NodeProcess&) = delete;
  ~NodeProcess();

  // Waits until it serves; its port.
  std::uint16_t port();
  pid_t pid() const { return pid_; }
  void signal(int number) const;
  // Waits for its end and that of its log: the exit status, or 128 + the signal that killed it.
  int wait_exit();
  // Waits for a line that holds the text, from the beginning of the log.
  std::string wait_for_line(std::string_view text);
  std::string log() const;

  // The program under test.
  static std::string program();

 private:
  void read_log(int file);

  pid_t pid_ = -1;
  int exit_status_ = -1;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::string log_;
  bool log_ended_ = false;
  std::thread reader_;
};

// Ours without WERK_*, LLAMA_*, HF_* and FAKE_ENGINE_*, and these.
std::vector<std::string> clean_environment(const std::vector<std::string>& more);

// Runs the program to its end with these words: what it printed and how it ended.
struct CommandRun {
  int status = 0;
  std::string out;
  std::string err;
};
CommandRun run_werk(const std::vector<std::string>& words,
                    const std::vector<std::string>& environment = {});

}  // namespace werk::test
