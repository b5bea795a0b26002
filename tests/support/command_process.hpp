// CommandProcess: the real program run by a test as a person at a terminal runs it, or as a script
// does: with three pipes, or with a terminal of its own (a pty) that its keys and its output go
// through. A thread gathers what it prints; waits are on its output and its exit, with a watchdog
// that throws, which fails the test. Destroying it kills what still runs. Blocking; one test's.
#pragma once

#include <sys/types.h>
#include <termios.h>

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

namespace werk::test {

enum class Around : std::uint8_t {
  nothing,   // /dev/null and two pipes
  pipes,     // three pipes
  terminal,  // 80 columns, TERM=xterm unless the environment says otherwise
};

class CommandProcess {
 public:
  struct Settings {
    std::vector<std::string> words;             // behind the program
    std::vector<std::string> environment = {};  // on top of ours without WERK_*, LLAMA_* and HF_*
    Around around = Around::nothing;
    std::string program = {};  // the program under test
  };

  explicit CommandProcess(Settings settings);
  CommandProcess(const CommandProcess&) = delete;
  CommandProcess& operator=(const CommandProcess&) = delete;
  ~CommandProcess();

  pid_t pid() const { return pid_; }
  void signal(int number) const;
  // Into its standard input; on a terminal these are keys ("\x03" is Ctrl-C, "\x04" Ctrl-D).
  void type(std::string_view bytes) const;
  void end_input();
  // Of its terminal: another size, and how it is set now.
  void resize(unsigned short lines, unsigned short columns) const;
  termios terminal_modes() const;
  // Waits until the text stands in what it printed; at a terminal both streams are one. A second
  // wait looks behind what the first found.
  void wait_for(std::string_view text);
  void wait_for_error(std::string_view text);
  // Waits until what it has printed so far is as wanted.
  void wait_until(const std::function<bool(const std::string& out)>& is_wanted);
  // The exit status, or 128 + the signal that killed it, when everything it printed is read.
  int wait_exit();
  std::string out() const;
  std::string err() const;

 private:
  struct Stream {
    int file = -1;
    std::string text;
    std::size_t seen = 0;
    bool ended = true;
    std::thread reader;
  };
  void read(Stream& stream);
  void follow(Stream& stream, int file);
  void wait_for(Stream& stream, std::string_view text);

  pid_t pid_ = -1;
  int exit_status_ = -1;
  int input_ = -1;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  Stream out_;
  Stream err_;
};

}  // namespace werk::test
