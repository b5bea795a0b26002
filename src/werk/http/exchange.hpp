// Exchange and Handler: what an HTTP server and the code that answers have in common. An Exchange
// is one request and its answer; the server owns it, it is valid while handle() runs, and all of it
// happens on the loop thread. Backpressure is in the calls: read_body() reads no further than
// asked, write() returns once the kernel has taken the bytes.
#pragma once

#include <cstdint>
#include <stop_token>
#include <string_view>

#include "werk/async/awaitable.hpp"
#include "werk/base/result.hpp"
#include "werk/http/message.hpp"

namespace werk::http {

class Exchange {
 public:
  virtual ~Exchange() = default;

  virtual const Request& request() const = 0;

  // Before the first read_body(); 1 MiB unless set.
  virtual void limit_body(std::uint64_t bytes_max) = 0;
  // The next piece, valid until the next call; empty at the end. Read up to the empty piece: from
  // then on the client is watched (see gone()). Sends 100 Continue first where it was asked for.
  // Errors: payload_too_large (of a declared length before anything is read), invalid_request (bad
  // framing, or the body stalled), cancelled (the client has left).
  virtual async::awaitable<Result<std::string_view>> read_body() = 0;

  // A stop is requested once the client has left or the server closes. While a body is still to be
  // read the client's leaving shows in read_body() instead.
  virtual std::stop_token gone() const = 0;

  // A whole answer; to HEAD without the body but with its length. The view must stay valid until it
  // returns. Fails with cancelled once the client has left, as do start(), write() and finish().
  virtual async::awaitable<Status> respond(ResponseHead head, std::string_view body) = 0;

  // A streamed answer: chunked, or until the connection closes for HTTP/1.0. The head leaves at
  // once, with `first` behind it in the same packet if given.
  virtual async::awaitable<Status> start(ResponseHead head, std::string_view first = {}) = 0;
  virtual async::awaitable<Status> write(std::string_view bytes) = 0;
  // The end, with `last` before it in the same packet if given.
  virtual async::awaitable<Status> finish(std::string_view last = {}) = 0;
  // After a failure in mid-stream: the connection will close without the last chunk.
  virtual void break_off() = 0;

  // respond() or start() was called.
  virtual bool started() const = 0;
};

class Handler {
 public:
  virtual ~Handler() = default;
  // Returning without an answer makes the server send 500.
  virtual async::awaitable<void> handle(Exchange& exchange) = 0;
};

}  // namespace werk::http
