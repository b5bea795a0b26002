// Stream: one connected socket (TCP or Unix) with its receive buffer; both ends of HTTP use it, the
// client's end with TLS between socket and buffer where it is asked for. At most one read is
// pending, always into the buffer's free room, and it survives from one message to the next: the
// read that watches for a peer that leaves is the read that brings the next head. Sending tries the
// kernel at once and waits only when the kernel is full. Owned by its connection; destroying or
// closing it ends every wait in a fresh turn. Inside http only, loop thread only.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string_view>

#include "werk/async/awaitable.hpp"
#include "werk/http/tls.hpp"

namespace werk::http {

enum class StreamEnd : std::uint8_t {
  open,
  eof,     // the peer ended its side in order; a half-close looks the same
  reset,   // the connection broke
  closed,  // by us
};

class Stream {
 public:
  // Takes over the connected, non-blocking descriptor. `family` is AF_INET, AF_INET6 or AF_UNIX.
  Stream(const async::Executor& executor, int descriptor, int family);
  ~Stream();
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;

  int descriptor() const;
  int family() const;

  // Bytes that arrived and were not consumed. Valid until the next arrival(); consuming moves
  // nothing.
  std::span<char> unread();
  void consume(std::size_t bytes);
  // Promises that nobody looks at consumed bytes any more; arrival() implies it.
  void forget_consumed();
  // The input has ended; unread() may still hold bytes that came before.
  StreamEnd end() const;
  // The buffer holds as many unconsumed bytes as it ever will.
  bool full() const;

  // Waits for more bytes, the end of the input or wake(). Invalidates unread(). `room` is the
  // buffer size that suits the caller, at most kBufferMax. One waiter.
  async::awaitable<void> arrival(std::size_t room);
  void wake();

  // Keeps one read pending although nobody waits, and goes on reading until 64 KiB are unread.
  // Moves no bytes.
  void read_ahead();
  // Called at most once, in a turn of the loop, when the input ends (or, with `or_bytes`, when
  // anything arrives) while nobody waits in arrival(). It may destroy the stream.
  enum class Watch : std::uint8_t { end_only, end_or_bytes };
  void on_end(Watch watch, std::function<void()> callback);

  // What the kernel took at once of the parts; nothing if it is full or the connection is broken
  // (send_rest tells which).
  std::size_t send_now(std::span<const std::string_view> parts);
  // Sends what lies behind the first `sent` bytes. False: broken or closed, or, where `interrupt`
  // says so, unread input came.
  enum class Interrupt : std::uint8_t { never, by_input };
  async::awaitable<bool> send_rest(std::span<const std::string_view> parts, std::size_t sent,
                                   Interrupt interrupt);
  // Waits until the kernel takes bytes, which is also when a connection that was being made is made
  // or has failed.
  async::awaitable<void> writable();
  // From now on everything goes through the session, whose hands are shaken first; before the first
  // read or send. False: it failed, as tls()->failure() says, or the stream was closed meanwhile.
  async::awaitable<bool> secure(std::unique_ptr<TlsSession> session);
  const TlsSession* tls() const;
  // A send waits for the peer; bytes_sent() tells whether it makes progress.
  bool sending() const;
  std::uint64_t bytes_sent() const;

  // Ends our side of the connection only.
  void shutdown_send();
  void close();

  static constexpr std::size_t kBufferMin = 4096;
  static constexpr std::size_t kBufferMax = 64 * 1024;

 private:
  struct Core;
  // Shared with the pending operations' handlers: the kernel's completion may come after the owner
  // has gone.
  std::shared_ptr<Core> core_;
};

}  // namespace werk::http
