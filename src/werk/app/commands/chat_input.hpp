// What a person or a pipe says in a chat. LineReader reads lines from standard input and sees
// Ctrl-C meanwhile; TurnJoiner makes turns of lines: one each, unless a backslash at its end or
// three quotes make a turn of several. The reader blocks; main thread. The joiner is a plain value.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "werk/base/result.hpp"

namespace werk::app {

class TurnJoiner {
 public:
  // The turn that this line ends, if it ends one.
  std::optional<std::string> add(std::string_view line);
  // A turn is begun and needs more lines.
  bool is_open() const { return open_; }
  // The begun turn, as if it had ended.
  std::string take();

 private:
  std::string text_;
  bool open_ = false;
  bool quoted_ = false;
};

class LineReader {
 public:
  enum class Kind : std::uint8_t { line, end, interrupted, failed };
  struct Read {
    Kind kind = Kind::end;
    std::string text = {};  // the line without its end; why it failed
  };

  // Shows the prompt, and from then on sees Ctrl-C; waits for the next line. The last one of a pipe
  // needs no end.
  Read next(std::string_view prompt);

 private:
  std::optional<Read> from_pending();

  std::string pending_;
  bool ended_ = false;
};

}  // namespace werk::app
