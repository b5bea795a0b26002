#include "tests/support/http_call.hpp"

#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <strings.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <stdexcept>
#include <utility>

namespace werk::test {

HttpCall::HttpCall(std::uint16_t port, std::string_view method, std::string_view target,
                   std::string_view body, const std::vector<std::string>& headers)
    : head_only_(method == "HEAD") {
  connect(port);
  ask(method, target, body, headers);
}

HttpCall HttpCall::to_socket(const std::string& path, std::string_view method,
                             std::string_view target, std::string_view body,
                             const std::vector<std::string>& headers) {
  HttpCall call;
  call.connect(path);
  call.ask(method, target, body, headers);
  return call;
}

void HttpCall::ask(std::string_view method, std::string_view target, std::string_view body,
                   const std::vector<std::string>& headers) {
  std::string request = std::string(method) + " " + std::string(target) + " HTTP/1.1\r\n";
  bool has_host = false;
  for (const std::string& header : headers) {
    request += header + "\r\n";
    has_host = has_host || header.starts_with("Host:");
  }
  if (!has_host) request += "Host: localhost\r\n";
  if (!body.empty()) {
    request +=
        "Content-Type: application/json\r\nContent-Length: " + std::to_string(body.size()) + "\r\n";
  }
  request += "\r\n";
  request += body;
  send(request);
}

HttpCall::HttpCall(std::uint16_t port, std::string_view raw_request) {
  connect(port);
  send(raw_request);
}

HttpCall::HttpCall(HttpCall&& other) noexcept
    : file_(std::exchange(other.file_, -1)),
      raw_(std::move(other.raw_)),
      used_(other.used_),
      head_read_(other.head_read_),
      head_(std::move(other.head_)),
      body_(std::move(other.body_)),
      chunked_(other.chunked_),
      has_length_(other.has_length_),
      length_(other.length_),
      head_only_(other.head_only_),
      end_(other.end_) {}

HttpCall::~HttpCall() { close(); }

void HttpCall::prepare(int file) {
  file_ = file;
  const timeval limit{60, 0};
  ::setsockopt(file_, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
}

void HttpCall::connect(std::uint16_t port) {
  prepare(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  const int on = 1;
  ::setsockopt(file_, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  if (::connect(file_, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0) {
    throw std::runtime_error("can't connect to the node");
  }
}

void HttpCall::connect(const std::string& path) {
  prepare(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  path.copy(address.sun_path, sizeof address.sun_path - 1);
  if (::connect(file_, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0) {
    throw std::runtime_error("can't connect to " + path);
  }
}

void HttpCall::send(std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t count = ::send(file_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (count < 0) return;  // the peer has left; reading tells how
    bytes.remove_prefix(static_cast<std::size_t>(count));
  }
}

void HttpCall::close() {
  if (file_ >= 0) ::close(file_);
  file_ = -1;
}

void HttpCall::reset() {
  const linger now{1, 0};
  ::setsockopt(file_, SOL_SOCKET, SO_LINGER, &now, sizeof now);
  close();
}

void HttpCall::half_close() { ::shutdown(file_, SHUT_WR); }

bool HttpCall::read_more() {
  std::array<char, 16384> buffer;
  const ssize_t count = ::recv(file_, buffer.data(), buffer.size(), 0);
  if (count < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
    throw std::runtime_error("no answer within the watchdog's time");
  if (count <= 0) {
    const bool by_close = head_read_ && !chunked_ && !has_length_;
    if (end_ == BodyEnd::open) end_ = by_close && count == 0 ? BodyEnd::proper : BodyEnd::cut;
    return false;
  }
  raw_.append(buffer.data(), static_cast<std::size_t>(count));
  if (head_read_) decode();
  return true;
}

void HttpCall::read_head() {
  while (!head_read_) {
    const std::size_t at = raw_.find("\r\n\r\n");
    if (at == std::string::npos) {
      if (!read_more()) throw std::runtime_error("the connection ended before an answer: " + raw_);
      continue;
    }
    head_ = raw_.substr(0, at + 2);
    raw_.erase(0, at + 4);
    if (head_.starts_with("HTTP/1.1 100")) continue;
    head_read_ = true;
    chunked_ = header("Transfer-Encoding") == "chunked";
    const std::string length = header("Content-Length");
    has_length_ = !length.empty();
    if (has_length_) length_ = std::stoull(length);
    if (head_only_ || status() == 204) {
      has_length_ = true;
      length_ = 0;
    }
    decode();
  }
}

void HttpCall::decode() {
  if (!chunked_) {
    body_ += raw_;
    raw_.clear();
    if (has_length_ && body_.size() >= length_) end_ = BodyEnd::proper;
    return;
  }
  while (end_ == BodyEnd::open) {
    const std::size_t line = raw_.find("\r\n");
    if (line == std::string::npos) return;
    const std::size_t size = std::stoull(raw_.substr(0, line), nullptr, 16);
    if (raw_.size() < line + 2 + size + 2) return;
    if (size == 0) {
      end_ = BodyEnd::proper;
      return;
    }
    body_ += raw_.substr(line + 2, size);
    raw_.erase(0, line + 2 + size + 2);
  }
}

int HttpCall::status() {
  read_head();
  return std::stoi(head_.substr(head_.find(' ') + 1, 3));
}

std::string HttpCall::header(std::string_view name) {
  read_head();
  std::size_t at = head_.find("\r\n") + 2;
  while (at < head_.size()) {
    const std::size_t end = head_.find("\r\n", at);
    const std::string line = head_.substr(at, end - at);
    const std::size_t colon = line.find(':');
    const bool same =
        colon == name.size() && ::strncasecmp(line.data(), name.data(), name.size()) == 0;
    if (same) return line.substr(line.find_first_not_of(' ', colon + 1));
    at = end + 2;
  }
  return {};
}

const std::string& HttpCall::whole_body() {
  read_head();
  while (end_ == BodyEnd::open && read_more()) {
  }
  return body_;
}

const std::string& HttpCall::body_until(std::string_view text) {
  read_head();
  while (body_.find(text) == std::string::npos && end_ == BodyEnd::open && read_more()) {
  }
  if (body_.find(text) == std::string::npos) {
    throw std::runtime_error("\"" + std::string(text) + "\" never came: " + body_);
  }
  return body_;
}

HttpCall chat(std::uint16_t port, std::string_view body) {
  return HttpCall(port, "POST", "/v1/chat/completions", body);
}

std::string chat_body(std::string_view model, std::string_view more) {
  std::string body =
      R"({"model":")" + std::string(model) + R"(","messages":[{"role":"user","content":"hi"}])";
  if (!more.empty()) body += "," + std::string(more);
  return body + "}";
}

}  // namespace werk::test
