#include "werk/http/sse.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "werk/base/assert.hpp"

namespace werk::http {
namespace {

constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";

}  // namespace

void SseParser::feed(std::string_view piece) {
  WERK_ASSERT(at_ == piece_.size() || failed_);
  piece_ = piece;
  at_ = 0;
  next_lf_known_ = false;
  event_in_piece_ = false;
}

// Leaves out a byte-order mark at the very start. False while the piece ends inside of it.
bool SseParser::skip_mark() {
  while (mark_seen_ < kByteOrderMark.size()) {
    if (at_ == piece_.size()) return false;
    if (piece_[at_] != kByteOrderMark[mark_seen_]) {
      // No mark after all: what was held back is the start of the first line.
      if (mark_seen_ > 0) {
        line_ = kByteOrderMark.substr(0, mark_seen_);
        line_buffered_ = true;
      }
      mark_seen_ = static_cast<std::uint8_t>(kByteOrderMark.size());
      return true;
    }
    ++at_;
    ++mark_seen_;
  }
  return true;
}

// The next LF is remembered, so that a piece with many CRs is searched once.
std::size_t SseParser::find_line_end() {
  if (!next_lf_known_ || next_lf_ < at_) {
    next_lf_ = std::min(piece_.find('\n', at_), piece_.size());
    next_lf_known_ = true;
  }
  const std::size_t cr = piece_.substr(at_, next_lf_ - at_).find('\r');
  return cr == std::string_view::npos ? next_lf_ : at_ + cr;
}

// A whole line without its end; nothing if the piece ends first (the rest is kept).
std::optional<std::string_view> SseParser::take_line() {
  if (skip_lf_ && at_ < piece_.size()) {
    skip_lf_ = false;
    if (piece_[at_] == '\n') ++at_;
  }
  if (at_ == piece_.size()) return std::nullopt;
  if (!event_begun_) {
    event_begun_ = true;
    event_in_piece_ = !line_buffered_;
    event_begin_ = at_;
  }
  const std::size_t end = find_line_end();
  const std::string_view rest = piece_.substr(at_, end - at_);
  if (rest.size() + line_.size() > event_bytes_max_ + 8) {  // room for the field's name
    failed_ = true;
    return std::nullopt;
  }
  if (end == piece_.size()) {
    line_.append(rest);
    line_buffered_ = true;
    at_ = end;
    return std::nullopt;
  }
  at_ = end + 1;
  if (piece_[end] == '\r') {
    if (at_ < piece_.size()) {
      if (piece_[at_] == '\n') ++at_;
    } else {
      skip_lf_ = true;
    }
  }
  if (!line_buffered_) return rest;
  line_.append(rest);
  return line_;
}

void SseParser::add_data(std::string_view value) {
  if (!has_data_) {
    has_data_ = true;
    data_is_view_ = !line_buffered_;
    if (data_is_view_) {
      data_view_ = value;
    } else {
      data_ = value;
    }
  } else {
    if (data_is_view_) data_ = data_view_;
    data_is_view_ = false;
    data_.push_back('\n');
    data_.append(value);
  }
  if ((data_is_view_ ? data_view_ : std::string_view(data_)).size() > event_bytes_max_)
    failed_ = true;
}

// Takes one line that is not blank in. Yields only comments.
std::optional<SseItem> SseParser::take_field(std::string_view line) {
  const std::size_t colon = line.find(':');
  const std::string_view field = line.substr(0, colon);
  std::string_view value =
      colon == std::string_view::npos ? std::string_view() : line.substr(colon + 1);
  if (!value.empty() && value.front() == ' ') value.remove_prefix(1);
  if (field == "data") {
    add_data(value);
  } else if (field == "event") {
    constexpr std::size_t kNameBytesMax = 256;
    name_ = value.substr(0, kNameBytesMax);
  } else if (field.empty() && colon == 0) {
    return SseItem{SseItem::Kind::comment, {}, value, {}};
  }
  return std::nullopt;
}

SseItem SseParser::dispatch() {
  SseItem item;
  item.name = name_;
  if (has_data_) item.data = data_is_view_ ? data_view_ : std::string_view(data_);
  if (event_in_piece_) item.raw = piece_.substr(event_begin_, at_ - event_begin_);
  return item;
}

void SseParser::forget_event() {
  event_begun_ = event_in_piece_ = false;
  has_data_ = data_is_view_ = false;
}

// The piece is about to go: what points into it moves into the buffer.
void SseParser::keep_views() {
  event_in_piece_ = false;
  if (!has_data_ || !data_is_view_) return;
  data_ = data_view_;
  data_is_view_ = false;
}

Result<std::optional<SseItem>> SseParser::too_long() {
  failed_ = true;
  return fail(
      ErrorCode::engine_failed, Origin::engine,
      fmt::format("an event of the engine's stream is longer than {} bytes", event_bytes_max_));
}

// The line that was handed out may lie in line_, so it is dropped only when the next one is wanted.
void SseParser::drop_used_line() {
  if (!line_used_) return;
  line_.clear();
  line_buffered_ = line_used_ = false;
}

Result<std::optional<SseItem>> SseParser::next() {
  if (failed_) return too_long();
  drop_used_line();
  if (!event_begun_) name_.clear();
  if (!skip_mark()) return std::nullopt;
  for (;;) {
    drop_used_line();
    const auto line = take_line();
    if (failed_) return too_long();
    if (!line) {
      keep_views();
      return std::nullopt;
    }
    line_used_ = true;
    if (!line->empty()) {
      const auto comment = take_field(*line);
      if (failed_) return too_long();
      if (comment && !has_data_ && name_.empty()) event_begun_ = false;
      if (comment) return comment;
      continue;
    }
    const SseItem item = dispatch();
    forget_event();
    if (!item.data.empty()) return item;
    name_.clear();
  }
}

Result<std::optional<SseItem>> SseParser::finish() {
  if (failed_) return too_long();
  WERK_ASSERT(at_ == piece_.size());
  drop_used_line();
  keep_views();
  if (line_buffered_) {
    (void)take_field(line_);
    line_used_ = true;
    if (failed_) return too_long();
  }
  const SseItem item = dispatch();
  forget_event();
  if (item.data.empty()) return std::nullopt;
  return item;
}

void append_sse_data(std::string& out, std::string_view data) {
  for (;;) {
    const auto* const stop =
        std::ranges::find_if(data, [](char letter) { return letter == '\r' || letter == '\n'; });
    const std::size_t end =
        stop == data.end() ? std::string_view::npos : static_cast<std::size_t>(stop - data.begin());
    out += "data: ";
    out.append(data.substr(0, end));
    out.push_back('\n');
    if (end == std::string_view::npos) break;
    data.remove_prefix(end + (data.substr(end, 2) == "\r\n" ? 2 : 1));
  }
  out.push_back('\n');
}

void append_sse_event(std::string& out, std::string_view name, std::string_view data) {
  out += "event: ";
  out.append(name);
  out.push_back('\n');
  append_sse_data(out, data);
}

void append_sse_comment(std::string& out, std::string_view text) {
  out += ": ";
  for (const char c : text) out.push_back(c == '\n' || c == '\r' ? ' ' : c);
  out += "\n\n";
}

}  // namespace werk::http
