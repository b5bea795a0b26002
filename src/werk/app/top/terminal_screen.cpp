#include "werk/app/top/terminal_screen.hpp"

#include <curses.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <bit>
#include <cstdint>
#include <cstdio>

#include "werk/app/terminal.hpp"
#include "werk/process/program.hpp"

// <term.h> has them, and hundreds of macros named `lines`, `bell` and the like.
extern "C" {
int setupterm(const char* name, int file, int* found);
struct term* set_curterm(struct term* terminal);
int del_curterm(struct term* terminal);
}

namespace werk::app::top {
namespace {

constexpr int kEscapeMs = 25;  // so long a lone Escape may turn out to begin another key
constexpr short kOwnColour = -1;

// Pairs of colours by style; 0 is the terminal's own.
constexpr short kGood = 1;
constexpr short kWarning = 2;
constexpr short kBad = 3;
constexpr short kKey = 4;
constexpr short kHeading = 5;
constexpr short kSelected = 6;

attr_t plain_attribute(Style style) {
  switch (style) {
    case Style::normal:
    case Style::good: return A_NORMAL;
    case Style::dim: return A_DIM;
    case Style::strong:
    case Style::warning:
    case Style::bad:
    case Style::key: return A_BOLD;
    case Style::heading: return A_UNDERLINE;
    case Style::sorted: return A_UNDERLINE | A_BOLD;
    case Style::selected: return A_REVERSE;
  }
  return A_NORMAL;
}

attr_t coloured_attribute(Style style) {
  const auto pair = [](short number) { return static_cast<attr_t>(COLOR_PAIR(number)); };
  switch (style) {
    case Style::good: return pair(kGood);
    case Style::warning: return pair(kWarning);
    case Style::bad: return pair(kBad) | A_BOLD;
    case Style::key: return pair(kKey) | A_BOLD;
    case Style::heading: return pair(kHeading);
    case Style::sorted:
    case Style::selected: return pair(kSelected);
    default: return plain_attribute(style);
  }
}

void make_colours() {
  ::start_color();
  const bool own = ::use_default_colors() == OK;
  const short ground = own ? kOwnColour : short{COLOR_BLACK};
  ::init_pair(kGood, COLOR_GREEN, ground);
  ::init_pair(kWarning, COLOR_YELLOW, ground);
  ::init_pair(kBad, COLOR_RED, ground);
  ::init_pair(kKey, COLOR_CYAN, ground);
  ::init_pair(kHeading, COLOR_BLACK, COLOR_GREEN);
  ::init_pair(kSelected, COLOR_BLACK, COLOR_CYAN);
}

Error no_terminal(std::string_view why) {
  return {ErrorCode::unsupported, fmt::format("{}; `werk top --once` prints the same once", why)};
}

std::string terminal_name() { return on_one_line(process::own_variable("TERM").value_or("")); }

KeyName name_of(wint_t code) {
  switch (code) {
    case KEY_UP: return KeyName::up;
    case KEY_DOWN: return KeyName::down;
    case KEY_PPAGE: return KeyName::page_up;
    case KEY_NPAGE: return KeyName::page_down;
    case KEY_HOME: return KeyName::home;
    case KEY_END: return KeyName::end;
    case KEY_BTAB: return KeyName::back_tab;
    case KEY_ENTER: return KeyName::enter;
    case KEY_BACKSPACE: return KeyName::backspace;
    case KEY_F(1): return KeyName::f1;
    case KEY_F(4): return KeyName::f4;
    case KEY_F(10): return KeyName::f10;
    default: return KeyName::other;
  }
}

Key character(wint_t code) {
  switch (code) {
    case '\t': return {KeyName::tab};
    case '\n':
    case '\r': return {KeyName::enter};
    case 0x1B: return {KeyName::escape};
    case 0x08:
    case 0x7F: return {KeyName::backspace};
    default: return {KeyName::character, static_cast<char32_t>(code)};
  }
}

}  // namespace

struct TerminalScreen::Parts {
  SCREEN* screen = nullptr;
  bool coloured = false;

  ~Parts() {
    if (screen == nullptr) return;
    ::endwin();
    ::delscreen(screen);
  }
};

Result<std::unique_ptr<TerminalScreen>> TerminalScreen::open() {
  if (!is_terminal(STDIN_FILENO) || !is_terminal(STDOUT_FILENO))
    return fail(no_terminal("top needs a terminal"));
  const std::string name = terminal_name();
  if (name.empty()) return fail(no_terminal("TERM doesn't say which terminal this is"));
  // newterm() says the same but loses memory when it fails.
  int known = 0;
  if (::setupterm(name.c_str(), STDOUT_FILENO, &known) != OK)
    return fail(no_terminal(fmt::format("the terminal {} (TERM) is not known here", name)));
  ::del_curterm(::set_curterm(nullptr));
  auto parts = std::make_unique<Parts>();
  parts->screen = ::newterm(nullptr, stdout, stdin);
  if (parts->screen == nullptr)
    return fail(no_terminal(fmt::format("the terminal {} (TERM) can't be opened", name)));
  if (const char* place = ::tigetstr("cup");
      place == nullptr || std::bit_cast<std::intptr_t>(place) == -1)
    return fail(no_terminal(fmt::format("the terminal {} (TERM) can't place text", name)));
  ::cbreak();
  ::noecho();
  ::nonl();
  ::keypad(::stdscr, TRUE);
  ::nodelay(::stdscr, TRUE);
  ::set_escdelay(kEscapeMs);
  ::curs_set(0);
  parts->coloured = can_colour(STDOUT_FILENO) && ::has_colors();
  if (parts->coloured) make_colours();
  return std::make_unique<TerminalScreen>(Passkey(), std::move(parts));
}

TerminalScreen::TerminalScreen(Passkey, std::unique_ptr<Parts> parts) : parts_(std::move(parts)) {}

TerminalScreen::~TerminalScreen() = default;

Extent TerminalScreen::extent() const {
  return {static_cast<std::size_t>(::getmaxx(::stdscr)),
          static_cast<std::size_t>(::getmaxy(::stdscr))};
}

void TerminalScreen::show(const std::vector<Line>& lines) {
  ::erase();
  for (std::size_t i = 0; i < lines.size(); ++i) {
    ::move(static_cast<int>(i), 0);
    for (const Span& span : lines[i]) {
      const attr_t attribute =
          parts_->coloured ? coloured_attribute(span.style) : plain_attribute(span.style);
      ::attrset(static_cast<int>(attribute));
      ::addnstr(span.text.data(), static_cast<int>(span.text.size()));
    }
  }
  ::attrset(A_NORMAL);
  ::refresh();
}

std::vector<Key> TerminalScreen::keys() {
  std::vector<Key> keys;
  while (true) {
    wint_t code = 0;
    const int kind = ::get_wch(&code);
    if (kind == ERR) return keys;
    keys.push_back(kind == KEY_CODE_YES ? Key{name_of(code)} : character(code));
  }
}

bool TerminalScreen::is_hung_up() const {
  pollfd input{STDIN_FILENO, POLLIN, 0};
  return ::poll(&input, 1, 0) > 0 && (input.revents & (POLLHUP | POLLERR | POLLNVAL)) != 0;
}

void TerminalScreen::fit() {
  winsize size{};
  if (::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col == 0 || size.ws_row == 0)
    return;
  ::resizeterm(size.ws_row, size.ws_col);
  // What a terminal makes of its text when its size changes is its own affair.
  redraw();
}

void TerminalScreen::redraw() { ::clearok(::curscr, TRUE); }

void TerminalScreen::leave() { ::endwin(); }

void TerminalScreen::come_back() {
  ::refresh();
  fit();
}

}  // namespace werk::app::top
