// RequestParser and ResponseParser: the reading half of HTTP/1, pure (bytes in, values out) and
// incremental; Beast's parser inside, kept out of this header. Each is owned by one connection and
// restarted for each message. They refuse what two readers could understand differently: several
// lengths, a length beside chunking, folded lines, codings other than chunked.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>

#include "werk/http/message.hpp"

namespace werk::http {

enum class Parse : std::uint8_t { need_more, done, failed };

struct ParseFailure {
  int status = 400;  // what a server answers: 400 or 431
  std::string_view message;
};

// What one step over body bytes gave. `piece` lies in the bytes that were given.
struct BodyStep {
  Parse state = Parse::need_more;
  std::size_t used = 0;
  std::string_view piece;
};

class RequestParser {
 public:
  explicit RequestParser(std::size_t head_bytes_max);
  ~RequestParser();

  // Forgets the last message; the next head is written into `request` (whose peer fields stay),
  // which must outlive the parse.
  void restart(Request& request);
  // Takes `used` of the bytes; call again with the rest and more. True bytes left over belong to
  // the body.
  Parse head(std::string_view bytes, std::size_t& used);
  // Decodes in place: the payload of all chunks in `bytes` ends up as one piece.
  BodyStep body(std::span<char> bytes);

  bool body_done() const;
  // The connection may serve another request once this body is done.
  bool keep_alive() const;
  ParseFailure failure() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

class ResponseParser {
 public:
  explicit ResponseParser(std::size_t head_bytes_max);
  ~ResponseParser();

  enum class Body : std::uint8_t { expected, none };  // none: the answer to HEAD

  // The next head is written into `head`, which must outlive head(). Interim answers (1xx) are
  // skipped.
  void restart(ResponseHead& head, Body body);
  Parse head(std::string_view bytes, std::size_t& used);
  BodyStep body(std::span<char> bytes);
  // The stream has ended: true if that ends the body properly.
  bool end_of_stream();

  bool body_done() const;
  bool keep_alive() const;
  std::string_view failure() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace werk::http
