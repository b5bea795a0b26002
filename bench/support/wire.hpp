// HTTP/1.1 as the benchmarks need it: where a server is, a connection to it, requests as bytes and
// an incremental reader of responses. Plain sockets, so that the client costs little of the two
// cores it shares with what it measures. Failures throw: a benchmark that can't measure ends.
// Single thread.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace werk::bench {

// A server on this machine.
struct Endpoint {
  std::string unix_path;   // else
  std::uint16_t port = 0;  // on 127.0.0.1
};

enum class Blocking : std::uint8_t { yes, no };
// A connected socket without Nagle's delay; the caller closes it.
int connect_to(const Endpoint& endpoint, Blocking blocking);
// The same, -1 where nobody listens (yet).
int try_connect(const Endpoint& endpoint, Blocking blocking);

// What a client speaks, and where it asks.
enum class Dialect : std::uint8_t { openai, messages };
std::string_view target_of(Dialect dialect);

std::string http_request(std::string_view method, std::string_view target, std::string_view body,
                         std::string_view key = {});

class ResponseReader {
 public:
  // Takes bytes of the connection and appends what belongs to the body.
  void feed(std::string_view bytes, std::string& body);
  bool done() const { return state_ == State::done; }
  bool started() const { return state_ != State::head || !head_.empty(); }
  int status() const { return status_; }
  // False: the server closes the connection behind this response.
  bool keeps_alive() const { return keeps_alive_; }
  void reset();

 private:
  enum class State : std::uint8_t { head, sized, chunk_size, chunk, chunk_end, trailer, done };
  void read_head();
  std::string_view take_line(std::string_view& bytes);

  State state_ = State::head;
  std::string head_;  // the head, then chunk size lines that were cut
  std::uint64_t left_ = 0;
  int status_ = 0;
  bool line_complete_ = false;
  bool keeps_alive_ = true;
};

// One request and its whole response, blocking.
struct Answer {
  int status = 0;  // 0: the connection failed
  std::string body;
};
Answer ask(const Endpoint& endpoint, std::string_view request);
// All of them at once, each on a connection of its own; the answers are read in their order.
std::vector<Answer> ask_all(const Endpoint& endpoint, const std::vector<std::string>& requests);

}  // namespace werk::bench
