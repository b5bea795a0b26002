#include "werk/app/terminal.hpp"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <cstdio>

#include "werk/base/text.hpp"
#include "werk/process/program.hpp"

namespace werk::app {

namespace {

constexpr std::size_t kUsualColumns = 80;

}  // namespace

int failed(const Error& error) {
  fmt::print(stderr, "werk: {}\n", error.message);
  return 1;
}

bool is_terminal(int file) { return ::isatty(file) == 1; }

std::size_t columns_of(int file) {
  winsize size{};
  const bool known = ::ioctl(file, TIOCGWINSZ, &size) == 0 && size.ws_col > 0;
  return known ? size.ws_col : kUsualColumns;
}

bool can_rewrite(int file) {
  const std::string term = process::own_variable("TERM").value_or("");
  return is_terminal(file) && !term.empty() && term != "dumb";
}

bool can_colour(int file) {
  return can_rewrite(file) && process::own_variable("NO_COLOR").value_or("").empty();
}

std::string shown_text(std::string_view text) {
  std::string shown;
  for (const char c : text) {
    if (c != '\r') shown += c;
  }
  return printable(shown);
}

void PassingLine::show(std::string_view text) {
  if (!able_ || text == shown_) return;
  shown_ = text;
  // A line that wraps can't be erased.
  const std::string_view fits = text.substr(0, columns_of(STDERR_FILENO) - 1);
  fmt::print(stderr, "\r{}\033[K", fits);
  std::fflush(stderr);
}

void PassingLine::clear() {
  if (shown_.empty()) return;
  fmt::print(stderr, "\r\033[K");
  std::fflush(stderr);
  shown_.clear();
}

}  // namespace werk::app
