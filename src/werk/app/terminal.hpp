// How a command behaves towards the person at the terminal: lines that rewrite themselves only on a
// terminal that can, colours only there and only without NO_COLOR, and nothing that a model said
// can steer the terminal. Main thread, no loop.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "werk/base/error.hpp"

namespace werk::app {

// Exit statuses beside 0 and 1.
inline constexpr int kUsageStatus = 2;     // the command line was wrong
inline constexpr int kSignalStatus = 130;  // ended by Ctrl-C

// The failure as one line on standard error; exit status 1.
int failed(const Error& error);

bool is_terminal(int file);
// How wide it is; 80 where it doesn't say.
std::size_t columns_of(int file);
// A terminal that can erase a line: TERM is set and not "dumb".
bool can_rewrite(int file);
// The same, where colours are not unwanted (NO_COLOR).
bool can_colour(int file);

// What somebody else wrote, fit to be shown: no control characters but newline and tab.
std::string shown_text(std::string_view text);

// One line on standard error that the next one replaces, for waits of more than a moment. Silent
// elsewhere than on a terminal that can rewrite. Erased with the object.
class PassingLine {
 public:
  PassingLine() = default;
  PassingLine(const PassingLine&) = delete;
  PassingLine& operator=(const PassingLine&) = delete;
  ~PassingLine() { clear(); }

  bool is_shown_at_all() const { return able_; }
  void show(std::string_view text);
  void clear();

 private:
  bool able_ = can_rewrite(2);
  std::string shown_;
};

}  // namespace werk::app
