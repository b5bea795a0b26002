// PipedProcess: any program as a child with pipes, in a process group, an environment and a folder
// that the test names; nothing of the test's own environment reaches it. A thread drains what it
// prints. Waits have a watchdog that throws, which fails the test. Destroying it kills the whole
// group. Blocking; owned by one test.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <condition_variable>
#include <filesystem>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

namespace werk::test {

class PipedProcess {
 public:
  struct Settings {
    std::string program;                  // a path
    std::vector<std::string> words = {};  // behind the program's name
    std::vector<std::string> environment = {};
    std::filesystem::path folder = {};  // where it works; empty: where the test does
  };

  explicit PipedProcess(Settings settings);
  PipedProcess(const PipedProcess&) = delete;
  PipedProcess& operator=(const PipedProcess&) = delete;
  ~PipedProcess();

  void write(std::string_view text);
  void close_input();
  pid_t pid() const { return pid_; }
  void signal(int number) const;
  // Waits until one of its outputs holds the text.
  void wait_for_text(std::string_view text, std::chrono::seconds limit);
  // Waits for the next line of its output that holds the text; lines before it are passed over.
  std::string next_line(std::string_view text);
  // Closes its input and waits for its end: the exit status, or 128 + the signal that killed it.
  int wait_exit();
  // All that it has printed so far; after wait_exit(), all.
  std::string out() const;
  std::string err() const;

 private:
  void read();

  pid_t pid_ = -1;
  int exit_status_ = -1;
  int input_ = -1;
  int out_file_ = -1;
  int err_file_ = -1;
  int stop_ = -1;  // an eventfd
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::string out_;
  std::string err_;
  std::size_t passed_ = 0;  // bytes of out_ that next_line() has given out
  bool ended_ = false;
  std::thread reader_;
};

}  // namespace werk::test
