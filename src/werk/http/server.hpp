// Server: accepts connections, reads requests under limits and lets one Handler answer them. Owned
// by whoever owns the handler; both must outlive close(), which must have returned before the
// server is destroyed if it ever listened. One connection has one request in the handler at a time;
// pipelined ones wait in its buffer. Loop thread only.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "werk/async/awaitable.hpp"
#include "werk/async/clock.hpp"
#include "werk/base/result.hpp"
#include "werk/http/exchange.hpp"

namespace werk::http {

// Limits in time are checked about once a second; zero switches one off.
struct ServerLimits {
  std::size_t connections_max = 8192;      // more are answered 503
  std::size_t head_bytes_max = 64 * 1024;  // else 431
  std::chrono::seconds head_time{10};      // from a head's first byte to its last, else 408
  std::chrono::seconds idle_time{75};      // between requests, and before the first
  std::chrono::seconds body_stall_time{30};
  std::chrono::seconds write_stall_time{300};  // a client that takes nothing for so long has left
};

struct Endpoint {
  std::string host;
  std::uint16_t port = 0;
};

class Server {
 public:
  Server(async::Executor executor, async::Clock& clock, ServerLimits limits, Handler& handler);
  ~Server();
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  // How the server's own refusals look; an OpenAI-shaped JSON error unless set.
  void set_error_body(ErrorBody renderer);

  // `host` is a literal address or "localhost" (its IPv4 one); port 0 lets the system choose.
  // conflict: the port is taken, and by whom if that can be told. May be called several times.
  Result<Endpoint> listen(const std::string& host, std::uint16_t port);
  // A Unix socket; the path is removed on close().
  Status listen_unix(const std::string& path);

  // Draining: answers carry Connection: close and idle connections are closed; still accepts.
  void stop_keep_alive();
  // Stops accepting, closes every connection, requests a stop on running exchanges and returns when
  // all have ended.
  async::awaitable<void> close();

  std::size_t connections() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace werk::http
