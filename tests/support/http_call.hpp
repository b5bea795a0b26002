// HttpCall: one request over TCP by a blocking client that shows every byte: the head, the body as
// it comes (chunks decoded), and how the answer ended. Destroying it closes the connection, as a
// client that leaves does. A watchdog on the socket throws, which fails the test. Any thread, one
// at a time.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace werk::test {

enum class BodyEnd : std::uint8_t {
  open,    // more may come
  proper,  // Content-Length reached, last chunk seen, or (HTTP/1.0) closed
  cut,     // the connection ended before that
};

class HttpCall {
 public:
  HttpCall(std::uint16_t port, std::string_view method, std::string_view target,
           std::string_view body = {}, const std::vector<std::string>& headers = {});
  // Sends these bytes as they are.
  HttpCall(std::uint16_t port, std::string_view raw_request);
  // To a Unix socket: an engine asked past the node.
  static HttpCall to_socket(const std::string& path, std::string_view method,
                            std::string_view target, std::string_view body,
                            const std::vector<std::string>& headers);
  HttpCall(HttpCall&& other) noexcept;
  HttpCall& operator=(HttpCall&&) = delete;
  ~HttpCall();

  // Each of these waits.
  int status();
  std::string header(std::string_view name);  // "" if it isn't there
  const std::string& whole_body();            // reads to the end
  const std::string& body_until(
      std::string_view text);  // reads until the text has come, or the end
  BodyEnd end() const { return end_; }

  void send(std::string_view bytes);
  void close();       // orderly
  void reset();       // with a RST
  void half_close();  // shuts its own sending side only

 private:
  HttpCall() = default;
  void connect(std::uint16_t port);
  void connect(const std::string& path);
  void prepare(int file);
  void ask(std::string_view method, std::string_view target, std::string_view body,
           const std::vector<std::string>& headers);
  bool read_more();
  void read_head();
  void decode();

  int file_ = -1;
  std::string raw_;
  std::size_t used_ = 0;
  bool head_read_ = false;
  std::string head_;
  std::string body_;
  bool chunked_ = false;
  bool has_length_ = false;
  std::uint64_t length_ = 0;
  bool head_only_ = false;
  BodyEnd end_ = BodyEnd::open;
};

// POST /v1/chat/completions with this body.
HttpCall chat(std::uint16_t port, std::string_view body);
// A usual body: {"model":MODEL,"messages":[...],"stream":...,MORE}
std::string chat_body(std::string_view model, std::string_view more = {});

}  // namespace werk::test
