#include "bench/support/wire.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <stdexcept>

namespace werk::bench {
namespace {

int connect_unix(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  path.copy(address.sun_path, sizeof address.sun_path - 1);
  const int file = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const auto* generic = reinterpret_cast<const sockaddr*>(&address);
  if (::connect(file, generic, sizeof address) == 0) return file;
  ::close(file);
  return -1;
}

int connect_tcp(std::uint16_t port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  const int file = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const auto* generic = reinterpret_cast<const sockaddr*>(&address);
  if (::connect(file, generic, sizeof address) == 0) {
    const int on = 1;
    ::setsockopt(file, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    return file;
  }
  ::close(file);
  return -1;
}

// The value of a header in a head, any case; empty without one.
std::string_view header_in(std::string_view head, std::string_view name) {
  for (std::size_t at = head.find("\r\n"); at != std::string_view::npos;
       at = head.find("\r\n", at + 2)) {
    std::string_view line = head.substr(at + 2);
    line = line.substr(0, line.find("\r\n"));
    const std::size_t colon = line.find(':');
    if (colon != name.size()) continue;
    const bool same = std::equal(name.begin(), name.end(), line.begin(),
                                 [](char a, char b) { return (a | 32) == (b | 32); });
    if (!same) continue;
    line.remove_prefix(colon + 1);
    while (line.starts_with(' ')) line.remove_prefix(1);
    return line;
  }
  return {};
}

std::uint64_t number_of(std::string_view text, int base) {
  std::uint64_t value = 0;
  std::from_chars(text.data(), text.data() + text.size(), value, base);
  return value;
}

}  // namespace

int try_connect(const Endpoint& endpoint, Blocking blocking) {
  const int file =
      endpoint.unix_path.empty() ? connect_tcp(endpoint.port) : connect_unix(endpoint.unix_path);
  if (file >= 0 && blocking == Blocking::no) ::fcntl(file, F_SETFL, O_NONBLOCK);
  return file;
}

int connect_to(const Endpoint& endpoint, Blocking blocking) {
  const int file = try_connect(endpoint, blocking);
  if (file >= 0) return file;
  throw std::runtime_error(
      fmt::format("nobody listens on {}{}", endpoint.unix_path, endpoint.port));
}

std::string_view target_of(Dialect dialect) {
  return dialect == Dialect::messages ? "/v1/messages" : "/v1/chat/completions";
}

std::string http_request(std::string_view method, std::string_view target, std::string_view body,
                         std::string_view key) {
  std::string text = fmt::format("{} {} HTTP/1.1\r\nHost: localhost\r\n", method, target);
  if (!key.empty()) text += fmt::format("Authorization: Bearer {}\r\n", key);
  if (method == "POST") {
    text += fmt::format("Content-Type: application/json\r\nContent-Length: {}\r\n", body.size());
  }
  return text.append("\r\n").append(body);
}

void ResponseReader::reset() {
  state_ = State::head;
  head_.clear();
  left_ = 0;
  status_ = 0;
  keeps_alive_ = true;
}

void ResponseReader::read_head() {
  if (head_.size() > 12) status_ = static_cast<int>(number_of({head_.data() + 9, 3}, 10));
  keeps_alive_ = header_in(head_, "Connection") != "close";
  if (header_in(head_, "Transfer-Encoding") == "chunked") {
    state_ = State::chunk_size;
  } else {
    left_ = number_of(header_in(head_, "Content-Length"), 10);
    state_ = left_ > 0 ? State::sized : State::done;
  }
  head_.clear();
}

// A line without its end; line_complete_ tells whether it is whole. A part is kept in head_.
std::string_view ResponseReader::take_line(std::string_view& bytes) {
  const std::size_t end = bytes.find('\n');
  line_complete_ = end != std::string_view::npos;
  if (!line_complete_) {
    head_ += bytes;
    bytes = {};
    return {};
  }
  std::string_view line = bytes.substr(0, end);
  bytes.remove_prefix(end + 1);
  if (!head_.empty()) {
    head_ += line;
    line = head_;
  }
  return line;
}

void ResponseReader::feed(std::string_view bytes, std::string& body) {
  while (!bytes.empty() && state_ != State::done) {
    if (state_ == State::head) {
      head_ += bytes;
      const std::size_t end = head_.find("\r\n\r\n");
      if (end == std::string::npos) return;
      bytes.remove_prefix(bytes.size() - (head_.size() - end - 4));
      head_.resize(end);
      read_head();
    } else if (state_ == State::sized || state_ == State::chunk) {
      const auto count = static_cast<std::size_t>(std::min<std::uint64_t>(left_, bytes.size()));
      body.append(bytes.data(), count);
      bytes.remove_prefix(count);
      left_ -= count;
      if (left_ == 0) state_ = state_ == State::sized ? State::done : State::chunk_end;
    } else {
      const std::string_view line = take_line(bytes);
      if (!line_complete_) return;
      if (state_ == State::chunk_size) {
        left_ = number_of(line, 16);
        state_ = left_ > 0 ? State::chunk : State::trailer;
      } else if (state_ == State::chunk_end) {
        state_ = State::chunk_size;
      } else if (line.empty() || line == "\r") {
        state_ = State::done;
      }
      head_.clear();
    }
  }
}

std::vector<Answer> ask_all(const Endpoint& endpoint, const std::vector<std::string>& requests) {
  std::vector<int> files;
  for (const std::string& request : requests) {
    const int file = try_connect(endpoint, Blocking::yes);
    // What fails here shows when it is read.
    ::send(file, request.data(), request.size(), MSG_NOSIGNAL);
    files.push_back(file);
  }
  std::array<char, 65536> buffer;
  std::vector<Answer> answers;
  for (const int file : files) {
    Answer& answer = answers.emplace_back();
    ResponseReader reader;
    bool open = true;
    while (open && !reader.done()) {
      const ssize_t got = ::recv(file, buffer.data(), buffer.size(), 0);
      open = got > 0;
      if (open) reader.feed({buffer.data(), static_cast<std::size_t>(got)}, answer.body);
    }
    if (file >= 0) ::close(file);
    if (reader.done()) answer.status = reader.status();
  }
  return answers;
}

Answer ask(const Endpoint& endpoint, std::string_view request) {
  return ask_all(endpoint, {std::string(request)}).front();
}

}  // namespace werk::bench
