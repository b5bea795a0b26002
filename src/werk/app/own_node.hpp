// OwnNode: a node that a command starts for itself, where none serves its home, and that ends with
// the command, however that ends. It is a child that runs `werk serve`; its log lies in the home.
// Owned by the command; blocking, with a loop of its own for as long as the node starts or stops.
#pragma once

#include <chrono>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "werk/app/command_line.hpp"
#include "werk/base/result.hpp"

namespace werk::app {

// How such a node ends where another one holds the home already.
inline constexpr int kHomeHeldStatus = 75;

class OwnNode {
 public:
  // `words` is the command line behind the program; `log_name` a file below `<home>/run`.
  OwnNode(std::filesystem::path home, std::vector<std::string> words, std::string log_name);
  OwnNode(const OwnNode&) = delete;
  OwnNode& operator=(const OwnNode&) = delete;
  ~OwnNode();

  // Its address, once it serves. `start_failed` with what it said last, `conflict` where another
  // node holds the home, `cancelled` after a signal; nothing of it runs then.
  Result<std::string> start();
  // Asks it to end, kills it after the limit, and returns when it is gone.
  void stop(std::chrono::milliseconds limit);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// The options of a command line as words for `werk serve`, but for these flags.
std::vector<std::string> serve_words(const CommandLine& line,
                                     const std::vector<std::string_view>& without);

// A node that runs already has options of its own: says which of these have no effect on it.
void note_idle_options(const CommandLine& line, const std::string& url);

// Whether this process is such a node: it loads what it is asked for and nothing beforehand but its
// default.
bool is_own_node();

}  // namespace werk::app
