// Client: HTTP/1.1 requests to engines, over TCP, TLS or Unix sockets. Owned by the adapter that
// talks to the engine. Connections are reused as the profile says; a request that went out on a
// reused connection which turns out to be dead is sent once more on a fresh one, provided no byte
// of an answer had come. A stop closes the engine's connection in the same turn. Loop thread only.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <stop_token>
#include <string>
#include <string_view>

#include "werk/async/awaitable.hpp"
#include "werk/async/clock.hpp"
#include "werk/base/result.hpp"
#include "werk/http/headers.hpp"
#include "werk/http/message.hpp"

namespace werk::http {

struct Address {
  std::string unix_path;  // wins
  std::string host;       // a literal address, or a name that is looked up
  std::uint16_t port = 0;
  std::string tls_name = {};  // not empty: TLS, with a certificate for this name (or address)
  bool operator==(const Address&) const = default;
};

struct ClientProfile {
  std::chrono::seconds connect_limit{3};  // look-up, connection and TLS together
  bool reuse = true;
  std::chrono::milliseconds idle_max{4000};  // engines commonly close after 5 s
  unsigned uses_max = 90;                    // llama-server serves 100 requests on a connection
  std::size_t idle_connections_max = 64;
  std::size_t head_bytes_max = 64 * 1024;
};

struct ClientRequest {
  std::string method;
  std::string target;
  Headers headers;        // Host, Content-Length and Connection are added
  std::string_view body;  // must outlive send()
};

// An answer whose head is in and whose body is read piece by piece. It may outlive its Client.
// Destroying it closes the connection, unless the body has ended and the connection can be used
// again.
class Response {
 public:
  int status = 0;
  Headers headers;

  struct Impl;
  explicit Response(std::unique_ptr<Impl> impl);  // made by Client
  ~Response();
  Response(const Response&) = delete;
  Response& operator=(const Response&) = delete;

  // The next piece, valid until the next call; empty at the proper end. engine_failed: cut or
  // malformed. cancelled: stopped, with the connection closed in the turn of the stop. Reads no
  // further ahead than one buffer.
  async::awaitable<Result<std::string_view>> read_some(std::stop_token stop);
  // Whether nothing is left to read, going by what has arrived already; drops a rest of the body.
  bool end_is_here();

 private:
  std::unique_ptr<Impl> impl_;
};

struct Whole {
  int status = 0;
  Headers headers;
  std::string body;
};

class Client {
 public:
  Client(async::Executor executor, async::Clock& clock, ClientProfile profile);
  ~Client();
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;

  // Returns once the head of the answer is in. engine_failed: no connection, or no proper answer;
  // engine_timeout: connecting took too long (nothing else has a limit here); cancelled: stopped.
  async::awaitable<Result<std::unique_ptr<Response>>> send(Address address, ClientRequest request,
                                                           std::stop_token stop);
  // The whole answer. engine_failed also when its body is longer than the limit.
  async::awaitable<Result<Whole>> fetch(Address address, ClientRequest request,
                                        std::size_t body_bytes_max, std::stop_token stop);

  // Connections kept for reuse at the moment.
  std::size_t idle_connections() const;

 private:
  struct Pool;
  friend class Response;
  // Shared with the responses, which give their connection back to it if it still exists.
  std::shared_ptr<Pool> pool_;
};

}  // namespace werk::http
