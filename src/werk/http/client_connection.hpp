// ClientConnection: one connection to an engine, used for one request at a time over a stream that
// a Connector made. Owned by the client's pool while idle and by a Response while in use. Inside
// http only, loop thread only.
#pragma once

#include <memory>
#include <stop_token>
#include <string>

#include "werk/async/clock.hpp"
#include "werk/base/result.hpp"
#include "werk/http/client.hpp"
#include "werk/http/heads.hpp"
#include "werk/http/parser.hpp"
#include "werk/http/stream.hpp"

namespace werk::http {

class ClientConnection {
 public:
  ClientConnection(std::unique_ptr<Stream> stream, const Address& address,
                   std::size_t head_bytes_max);

  enum class Outcome : std::uint8_t {
    head,       // the head is in
    lost,       // the connection ended before any byte of an answer
    broken,     // it ended within the head
    malformed,  // what came is not an HTTP answer
    stopped,
  };
  // Sends the request and reads the head of its answer.
  async::awaitable<Outcome> ask(const ClientRequest& request, ResponseHead& head,
                                Persistence persistence, std::stop_token stop);
  // The next piece of the body, as Response::read_some(). What came before a fault is given first.
  async::awaitable<Result<std::string_view>> read_some(std::stop_token stop);

  // As Response::end_is_here().
  bool end_is_here();

  // The answer has been read to its end and the connection can carry another request.
  bool reusable() const;
  std::string_view complaint() const { return parser_.failure(); }
  const Address& address() const { return address_; }
  unsigned uses() const { return uses_; }
  Stream& stream() { return *stream_; }

  async::TimePoint idle_since;

 private:
  std::unique_ptr<Stream> stream_;
  Address address_;
  std::string host_;
  ResponseParser parser_;
  std::string out_;
  std::size_t room_ = Stream::kBufferMin;
  unsigned uses_ = 0;
  bool sent_whole_ = false;
  bool head_in_ = false;
  bool body_malformed_ = false;
};

}  // namespace werk::http
