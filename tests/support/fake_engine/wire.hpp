// The fake's side of sockets: a listener and one connection with blocking calls, so that the fake
// has every byte and every close in its own hands. One thread per connection.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace werk::fake {

struct Request {
  std::string method;
  std::string target;
  std::vector<std::pair<std::string, std::string>> headers;  // names in lower case
  std::string body;
  bool keep_alive = true;

  std::string path() const { return target.substr(0, target.find('?')); }
  std::string header(std::string_view name) const;
};

struct Listener {
  int file = -1;
  std::string address;  // "unix:///..." or "http://127.0.0.1:PORT"
};

// A host that ends in ".sock" is the path of a UNIX socket. Nothing if it can't be bound.
std::optional<Listener> listen_on(const std::string& host, std::uint16_t port);

class Connection {
 public:
  explicit Connection(int file) : file_(file) {}
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;
  ~Connection() { close(); }

  int file() const { return file_; }
  // Nothing once the peer has closed or talks no HTTP. The last byte of a body stays in the socket
  // until finish_body(): closing before makes the peer see a reset, also on a UNIX socket.
  std::optional<Request> read_request();
  void finish_body();
  // False once the peer has gone. `segment_bytes` 0: in one call.
  bool write(std::string_view bytes, std::size_t segment_bytes);
  bool peer_gone() const;
  // Returns then, or as soon as the peer has gone.
  void watch_until(std::chrono::steady_clock::time_point due) const;
  void close();
  void reset();

 private:
  bool read_head(std::string& head);
  bool read_exactly(std::string& into, std::size_t count);
  bool read_chunked(std::string& body);
  std::optional<std::string> read_line();

  int file_;
  bool byte_left_ = false;
};

// "503 Service Unavailable"
std::string status_text(unsigned status);

}  // namespace werk::fake
