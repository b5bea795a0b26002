#include "werk/app/commands/chat_input.hpp"

#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>

#include "werk/base/text.hpp"
#include "werk/process/interrupt.hpp"

namespace werk::app {

namespace {

constexpr std::string_view kQuotes = "\"\"\"";
constexpr std::size_t kLineBytesMax = std::size_t{16} << 20;

}  // namespace

std::optional<std::string> TurnJoiner::add(std::string_view line) {
  if (!open_ && line.starts_with(kQuotes)) {
    line.remove_prefix(kQuotes.size());
    open_ = quoted_ = true;
    if (line.empty()) return std::nullopt;
  }
  if (quoted_) {
    if (line.ends_with(kQuotes)) {
      text_ += line.substr(0, line.size() - kQuotes.size());
      return take();
    }
    text_.append(line).append("\n");
    return std::nullopt;
  }
  if (line.ends_with('\\')) {
    text_.append(line.substr(0, line.size() - 1)).append("\n");
    open_ = true;
    return std::nullopt;
  }
  text_ += line;
  return take();
}

std::string TurnJoiner::take() {
  open_ = quoted_ = false;
  while (text_.ends_with('\n')) text_.pop_back();
  return std::exchange(text_, {});
}

std::optional<LineReader::Read> LineReader::from_pending() {
  const std::size_t end = pending_.find('\n');
  if (end == std::string::npos && !ended_) return std::nullopt;
  if (end == std::string::npos && pending_.empty()) return Read{Kind::end};
  Read read{Kind::line, pending_.substr(0, end)};
  pending_.erase(0, end == std::string::npos ? end : end + 1);
  if (read.text.ends_with('\r')) read.text.pop_back();
  return read;
}

LineReader::Read LineReader::next(std::string_view prompt) {
  process::Interrupt interrupt;
  fmt::print("{}", prompt);
  std::fflush(stdout);
  std::array<char, 65536> buffer;
  while (true) {
    if (auto read = from_pending()) return std::move(*read);
    std::array<pollfd, 2> watched{pollfd{STDIN_FILENO, POLLIN, 0},
                                  pollfd{interrupt.descriptor(), POLLIN, 0}};
    ::poll(watched.data(), watched.size(), -1);
    if (interrupt.take() != 0) {
      pending_.clear();
      return {Kind::interrupted};
    }
    if (watched[0].revents == 0) continue;
    const ssize_t count = ::read(STDIN_FILENO, buffer.data(), buffer.size());
    if (count < 0 && (errno == EINTR || errno == EAGAIN)) continue;
    if (count < 0)
      return {Kind::failed, fmt::format("cannot read standard input: {}", std::strerror(errno))};
    if (count == 0) ended_ = true;
    pending_.append(buffer.data(), static_cast<std::size_t>(count));
    if (pending_.size() > kLineBytesMax) {
      return {Kind::failed, fmt::format("a line of standard input has more than {}",
                                        readable_bytes(kLineBytesMax))};
    }
  }
}

}  // namespace werk::app
