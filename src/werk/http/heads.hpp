// The writing half of HTTP/1: heads and chunk frames as bytes, appended to a buffer of the
// caller's. Pure. What a caller put into Headers cannot break the framing: line ends inside names
// and values are replaced, and fields that frame the message are left out, since the server and the
// client write those themselves.
#pragma once

#include <array>
#include <cstdint>
#include <ctime>
#include <optional>
#include <string>
#include <string_view>

#include "werk/http/message.hpp"

namespace werk::http {

enum class Framing : std::uint8_t { length, chunked, until_close, none };
enum class Persistence : std::uint8_t { keep_alive, close };

std::string_view reason_phrase(int status);

// The Date field's value, made anew once a second at most.
class DateText {
 public:
  std::string_view at(std::time_t now);

 private:
  std::time_t second_ = -1;
  std::array<char, 32> text_{};
};

struct AnswerFrame {
  Framing framing = Framing::length;
  std::uint64_t length = 0;
  Persistence persistence = Persistence::keep_alive;
  int request_version = 11;
  std::string_view date;
};
void append_response_head(std::string& out, const ResponseHead& head, const AnswerFrame& frame);

struct RequestFrame {
  std::string_view method;
  std::string_view target;
  std::string_view host;
  std::optional<std::uint64_t> length;
  Persistence persistence = Persistence::keep_alive;
};
void append_request_head(std::string& out, const Headers& headers, const RequestFrame& frame);

// "1f\r\n" in a buffer of its own.
class ChunkHead {
 public:
  explicit ChunkHead(std::size_t bytes);
  std::string_view view() const {
    return std::string_view(text_.data() + begin_, text_.size() - begin_);
  }

 private:
  std::array<char, 18> text_;
  std::size_t begin_;
};

// {"error":{"message":...,"type":...,"param":null,"code":null}}: the body of the server's own
// refusals unless another renderer is set.
std::string default_error_body(int status, std::string_view message);

}  // namespace werk::http
