#include "tests/support/fake_engine/wire.hpp"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cerrno>
#include <cstring>

namespace werk::fake {

namespace {

std::string lower(std::string text) {
  std::ranges::transform(text, text.begin(), [](unsigned char c) { return std::tolower(c); });
  return text;
}

std::string trimmed(const std::string& text) {
  const std::size_t first = text.find_first_not_of(" \t");
  if (first == std::string::npos) return "";
  return text.substr(first, text.find_last_not_of(" \t\r") - first + 1);
}

std::optional<Listener> listen_unix(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof address.sun_path) return std::nullopt;
  path.copy(address.sun_path, path.size());
  const int file = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const auto* generic = reinterpret_cast<const sockaddr*>(&address);
  if (::bind(file, generic, sizeof address) != 0 || ::listen(file, 512) != 0) return std::nullopt;
  return Listener{file, "unix://" + path};
}

std::optional<Listener> listen_tcp(const std::string& host, std::uint16_t port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  if (::inet_pton(AF_INET, host.c_str(), &address.sin_addr) != 1) return std::nullopt;
  const int file = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const int on = 1;
  ::setsockopt(file, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  auto* generic = reinterpret_cast<sockaddr*>(&address);
  if (::bind(file, generic, sizeof address) != 0 || ::listen(file, 512) != 0) return std::nullopt;
  socklen_t length = sizeof address;
  ::getsockname(file, generic, &length);
  return Listener{file, fmt::format("http://{}:{}", host, ntohs(address.sin_port))};
}

}  // namespace

std::string Request::header(std::string_view name) const {
  for (const auto& [key, value] : headers) {
    if (key == name) return value;
  }
  return "";
}

std::optional<Listener> listen_on(const std::string& host, std::uint16_t port) {
  return host.ends_with(".sock") ? listen_unix(host) : listen_tcp(host, port);
}

// Takes exactly the head out of the socket: what follows is looked at but left there.
bool Connection::read_head(std::string& head) {
  std::array<char, 16384> buffer;
  while (true) {
    const ssize_t seen = ::recv(file_, buffer.data(), buffer.size(), MSG_PEEK);
    if (seen < 0 && errno == EINTR) continue;
    if (seen <= 0) return false;
    const std::size_t before = head.size();
    head.append(buffer.data(), static_cast<std::size_t>(seen));
    const std::size_t end = head.find("\r\n\r\n", before < 3 ? 0 : before - 3);
    if (end != std::string::npos) head.resize(end + 4);
    ::recv(file_, buffer.data(), head.size() - before, 0);
    if (end != std::string::npos) return true;
  }
}

bool Connection::read_exactly(std::string& into, std::size_t count) {
  const std::size_t before = into.size();
  into.resize(before + count);
  std::size_t done = 0;
  while (done < count) {
    const ssize_t got = ::recv(file_, into.data() + before + done, count - done, 0);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return false;
    done += static_cast<std::size_t>(got);
  }
  return true;
}

std::optional<std::string> Connection::read_line() {
  std::string line;
  while (!line.ends_with("\r\n")) {
    if (!read_exactly(line, 1)) return std::nullopt;
  }
  line.resize(line.size() - 2);
  return line;
}

bool Connection::read_chunked(std::string& body) {
  while (true) {
    const std::optional<std::string> size = read_line();
    if (!size) return false;
    const std::size_t count = std::strtoull(size->c_str(), nullptr, 16);
    if (count > 0 && !read_exactly(body, count)) return false;
    if (!read_line()) return false;
    if (count == 0) return true;
  }
}

std::optional<Request> Connection::read_request() {
  std::string head;
  if (!read_head(head)) return std::nullopt;
  Request request;
  std::size_t at = head.find("\r\n");
  const std::string first = head.substr(0, at);
  const std::size_t space = first.find(' ');
  const std::size_t second = first.find(' ', space + 1);
  if (second == std::string::npos) return std::nullopt;
  request.method = first.substr(0, space);
  request.target = first.substr(space + 1, second - space - 1);
  while (at + 4 < head.size()) {
    const std::size_t end = head.find("\r\n", at + 2);
    const std::string line = head.substr(at + 2, end - at - 2);
    const std::size_t colon = line.find(':');
    if (colon == std::string::npos) return std::nullopt;
    request.headers.emplace_back(lower(line.substr(0, colon)), trimmed(line.substr(colon + 1)));
    at = end;
  }
  request.keep_alive = lower(request.header("connection")) != "close";
  if (lower(request.header("expect")) == "100-continue") {
    write("HTTP/1.1 100 Continue\r\n\r\n", 0);
  }
  if (lower(request.header("transfer-encoding")) == "chunked") {
    if (!read_chunked(request.body)) return std::nullopt;
    return request;
  }
  const std::size_t length = std::strtoull(request.header("content-length").c_str(), nullptr, 10);
  if (length == 0) return request;
  if (!read_exactly(request.body, length - 1)) return std::nullopt;
  char last = 0;
  if (::recv(file_, &last, 1, MSG_PEEK) != 1) return std::nullopt;
  request.body.push_back(last);
  byte_left_ = true;
  return request;
}

void Connection::finish_body() {
  char last = 0;
  if (byte_left_) ::recv(file_, &last, 1, 0);
  byte_left_ = false;
}

bool Connection::write(std::string_view bytes, std::size_t segment_bytes) {
  while (!bytes.empty()) {
    std::size_t size = bytes.size();
    if (segment_bytes > 0) size = std::min(segment_bytes, size);
    const ssize_t sent = ::send(file_, bytes.data(), size, MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent <= 0) return false;
    bytes.remove_prefix(static_cast<std::size_t>(sent));
  }
  return true;
}

bool Connection::peer_gone() const {
  pollfd look{file_, POLLRDHUP, 0};
  return ::poll(&look, 1, 0) > 0;
}

void Connection::watch_until(std::chrono::steady_clock::time_point due) const {
  const auto left = due - std::chrono::steady_clock::now();
  const auto nanoseconds = std::chrono::duration_cast<std::chrono::nanoseconds>(left).count();
  if (nanoseconds <= 0) return;
  const timespec limit{nanoseconds / 1'000'000'000, nanoseconds % 1'000'000'000};
  pollfd look{file_, POLLRDHUP, 0};
  ::ppoll(&look, 1, &limit, nullptr);
}

void Connection::close() {
  if (file_ >= 0) ::close(file_);
  file_ = -1;
}

void Connection::reset() {
  const linger at_once{1, 0};
  ::setsockopt(file_, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
  close();
}

std::string status_text(unsigned status) {
  switch (status) {
    case 200: return "200 OK";
    case 400: return "400 Bad Request";
    case 401: return "401 Unauthorized";
    case 404: return "404 Not Found";
    case 429: return "429 Too Many Requests";
    case 500: return "500 Internal Server Error";
    case 501: return "501 Not Implemented";
    case 503: return "503 Service Unavailable";
    default: return fmt::format("{} Status", status);
  }
}

}  // namespace werk::fake
