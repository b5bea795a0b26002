// TerminalScreen: the terminal while `werk top` has it, on ncurses: shows lines, reads keys, and
// gives the terminal back as it was, however the command ends. The only place that knows ncurses.
// At most one at a time; made after the SignalPipe, whose signals ncurses then leaves alone. Main
// thread.
#pragma once

#include <memory>
#include <vector>

#include "werk/app/top/cells.hpp"
#include "werk/app/top/keys.hpp"
#include "werk/app/top/layout.hpp"
#include "werk/base/result.hpp"

namespace werk::app::top {

class TerminalScreen {
  struct Passkey {};  // open() alone makes one
  struct Parts;

 public:
  TerminalScreen(Passkey, std::unique_ptr<Parts> parts);
  // Takes the terminal of standard input and output. Fails with the way out where there is none, or
  // one on which nothing can be placed.
  static Result<std::unique_ptr<TerminalScreen>> open();
  TerminalScreen(const TerminalScreen&) = delete;
  TerminalScreen& operator=(const TerminalScreen&) = delete;
  ~TerminalScreen();

  Extent extent() const;
  void show(const std::vector<Line>& lines);
  // What was typed since; never waits.
  std::vector<Key> keys();
  // Whether the terminal's other side is gone: no key will ever come.
  bool is_hung_up() const;

  // After SIGWINCH.
  void fit();
  // Everything anew, after something else wrote there.
  void redraw();
  // Gives the terminal back for a while, and takes it again.
  void leave();
  void come_back();

 private:
  std::unique_ptr<Parts> parts_;
};

}  // namespace werk::app::top
