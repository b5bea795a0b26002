// Server-sent events as bytes, both ways; framing only, no sockets. SseParser takes pieces of any
// size and yields events and comments; it accepts LF, CRLF and lone CR mixed, a byte-order mark,
// comments anywhere, a missing space after the colon and data of several lines (WHATWG HTML,
// "Server-sent events"). An event that lies within one piece is a view into that piece, others come
// from one bounded buffer. The caller owns the parser and the piece. A plain value, any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "werk/base/result.hpp"

namespace werk::http {

inline constexpr std::size_t kSseEventBytesMax = std::size_t{8} << 20;

struct SseItem {
  enum class Kind : std::uint8_t { event, comment };

  Kind kind = Kind::event;
  std::string_view name;  // of the `event:` field; empty where there was none
  std::string_view data;  // the lines of `data:` joined by LF; of a comment, what follows the colon
  // The event's bytes as they came, with the blank line that ends it, where they lie within one
  // piece; else empty.
  std::string_view raw;
};

class SseParser {
 public:
  // `event_bytes_max` bounds the data of one event and one line.
  explicit SseParser(std::size_t event_bytes_max = kSseEventBytesMax)
      : event_bytes_max_(event_bytes_max) {}

  // Gives the next piece, which must stay alive until next() has returned nothing.
  void feed(std::string_view piece);
  // The next item; nothing when the piece is used up. Views hold until the next call of any
  // function here. Events without data are dropped, as the standard says. An event or a line over
  // the limit is engine_failed, now and ever after.
  Result<std::optional<SseItem>> next();
  // The source has ended. An event whose blank line did not come is yielded if it has data: engines
  // close right after the last line. Whether its content is whole is the reader's question.
  Result<std::optional<SseItem>> finish();

 private:
  std::optional<std::string_view> take_line();
  std::optional<SseItem> take_field(std::string_view line);
  void add_data(std::string_view value);
  SseItem dispatch();
  void forget_event();
  void keep_views();
  void drop_used_line();
  std::size_t find_line_end();
  bool skip_mark();
  Result<std::optional<SseItem>> too_long();

  std::size_t event_bytes_max_;
  std::string_view piece_;
  std::size_t at_ = 0;
  std::size_t next_lf_ = 0;  // the first LF at or after at_; the piece's size if none
  bool next_lf_known_ = false;
  bool skip_lf_ = false;        // the last line ended with CR: an LF now belongs to it
  std::uint8_t mark_seen_ = 0;  // bytes of the byte-order mark; 3 = past it
  bool failed_ = false;

  std::string line_;  // the begun line, from earlier pieces
  bool line_buffered_ = false;
  bool line_used_ = false;  // the line was handed out

  bool has_data_ = false;
  bool data_is_view_ = false;
  std::string_view data_view_;
  std::string data_;
  std::string name_;
  bool event_begun_ = false;
  bool event_in_piece_ = false;
  std::size_t event_begin_ = 0;
};

// Appends one event: `data: ` lines (one for each line of `data`) and the blank line; with a name,
// an `event: ` line first.
void append_sse_data(std::string& out, std::string_view data);
void append_sse_event(std::string& out, std::string_view name, std::string_view data);
// Appends a comment, which clients ignore: a sign of life.
void append_sse_comment(std::string& out, std::string_view text);

}  // namespace werk::http
