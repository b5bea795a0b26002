#include "tests/support/scripted_server.hpp"

#include <fmt/format.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <boost/asio/as_tuple.hpp>
#include <boost/asio/generic/stream_protocol.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/write.hpp>
#include <cstring>
#include <optional>

#include "werk/base/assert.hpp"
#include "werk/base/text.hpp"

namespace werk::test {

namespace asio = boost::asio;
using IoError = boost::system::error_code;

namespace {

constexpr auto kToken = asio::as_tuple(asio::use_awaitable);

std::optional<std::string_view> field(std::string_view head, std::string_view name) {
  std::size_t at = head.find("\r\n");
  while (at != std::string_view::npos) {
    const std::string_view line = head.substr(at + 2, head.find("\r\n", at + 2) - at - 2);
    const std::size_t colon = line.find(':');
    if (colon != std::string_view::npos && equals_ignoring_case(line.substr(0, colon), name)) {
      return trim(line.substr(colon + 1));
    }
    at = head.find("\r\n", at + 2);
  }
  return std::nullopt;
}

// How many bytes the first request has, once all of them are there.
std::optional<std::size_t> whole_request(std::string_view bytes) {
  const std::size_t end = bytes.find("\r\n\r\n");
  if (end == std::string_view::npos) return std::nullopt;
  const std::size_t body = end + 4;
  const std::string_view head = bytes.substr(0, body);
  if (field(head, "transfer-encoding")) {
    const std::size_t last = bytes.find("0\r\n\r\n", body);
    if (last == std::string_view::npos) return std::nullopt;
    return last + 5;
  }
  const auto length = field(head, "content-length");
  const std::size_t size = body + (length ? std::stoul(std::string(*length)) : 0);
  return bytes.size() < size ? std::nullopt : std::optional(size);
}

}  // namespace

Reply& Reply::send(std::string bytes) {
  steps_.emplace_back(Send{std::move(bytes)});
  return *this;
}
Reply& Reply::chunk(std::string_view bytes) {
  return send(fmt::format("{:x}\r\n{}\r\n", bytes.size(), bytes));
}
Reply& Reply::last_chunk() { return send("0\r\n\r\n"); }
Reply& Reply::wait_for(async::Event& event) {
  steps_.emplace_back(Gate{&event});
  return *this;
}
Reply& Reply::tell(async::Event& event) {
  steps_.emplace_back(Signal{&event});
  return *this;
}
Reply& Reply::end(End how) {
  steps_.emplace_back(how);
  return *this;
}
Reply Reply::whole(int status, std::string_view content_type, std::string_view body) {
  Reply reply;
  reply.send(fmt::format("HTTP/1.1 {} Scripted\r\nContent-Type: {}\r\nContent-Length: {}\r\n\r\n{}",
                         status, content_type, body.size(), body));
  return reply;
}
Reply Reply::stream(std::string_view content_type) {
  Reply reply;
  reply.send(fmt::format(
      "HTTP/1.1 200 OK\r\nContent-Type: {}\r\nTransfer-Encoding: chunked\r\n\r\n", content_type));
  return reply;
}

struct ScriptedServer::Acceptor {
  Acceptor(const async::Executor& executor, int fd, int socket_family)
      : descriptor(executor, fd), family(socket_family) {}
  asio::posix::stream_descriptor descriptor;
  int family;
  std::string path;
};

// Shared by its two coroutines, one reading and one answering, which end in either order.
struct ScriptedServer::Connection {
  Connection(const async::Executor& executor, int fd, int family, std::size_t index)
      : socket(executor, asio::generic::stream_protocol(family, 0), fd),
        news(executor),
        number(index) {}
  asio::generic::stream_protocol::socket socket;
  async::Event news;
  std::size_t number;
  std::string inbox;
  std::size_t waiting = 0;  // whole requests not answered yet
  bool busy = false;
  bool deaf = false;
  std::stop_source left;  // the client has closed, or we have

  void close() {
    IoError ignored;
    socket.close(ignored);
    left.request_stop();
  }
};

ScriptedServer::ScriptedServer(async::Executor executor)
    : executor_(executor),
      request_arrived_(executor),
      connection_closed_(executor),
      tasks_(executor) {}

ScriptedServer::~ScriptedServer() { WERK_ASSERT(!acceptor_); }

std::uint16_t ScriptedServer::listen_tcp() {
  const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  WERK_ASSERT(::bind(fd, reinterpret_cast<sockaddr*>(&address), size) == 0);
  WERK_ASSERT(::listen(fd, SOMAXCONN) == 0);
  ::getsockname(fd, reinterpret_cast<sockaddr*>(&address), &size);
  acceptor_ = std::make_shared<Acceptor>(executor_, fd, AF_INET);
  accept_all();
  return ntohs(address.sin_port);
}

void ScriptedServer::listen_unix(const std::string& path) {
  const int fd = ::socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  WERK_ASSERT(path.size() < sizeof address.sun_path);
  std::memcpy(address.sun_path, path.data(), path.size());
  WERK_ASSERT(::bind(fd, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0);
  WERK_ASSERT(::listen(fd, SOMAXCONN) == 0);
  acceptor_ = std::make_shared<Acceptor>(executor_, fd, AF_UNIX);
  acceptor_->path = path;
  accept_all();
}

void ScriptedServer::accept_all() {
  // The handler keeps the acceptor alive past close(), and touches the server only without error.
  const auto on_ready = [this, kept = acceptor_](IoError error) {
    if (error) return;
    for (;;) {
      const int fd = ::accept4(kept->descriptor.native_handle(), nullptr, nullptr,
                               SOCK_NONBLOCK | SOCK_CLOEXEC);
      if (fd < 0) break;
      const std::size_t number = accepted_++;
      if (refuse_next_ > 0) {
        --refuse_next_;
        ::close(fd);
        continue;
      }
      auto connection = std::make_shared<Connection>(executor_, fd, kept->family, number);
      connections_.push_back(connection);
      tasks_.spawn(read_from(connection));
      tasks_.spawn(answer(connection));
    }
    accept_all();
  };
  acceptor_->descriptor.async_wait(asio::posix::descriptor_base::wait_read, on_ready);
}

async::awaitable<void> ScriptedServer::read_from(std::shared_ptr<Connection> connection) {
  std::array<char, 16384> room{};
  for (;;) {
    const auto buffer = asio::buffer(room);
    const auto result = co_await connection->socket.async_receive(buffer, kToken);
    const auto& [error, bytes] = result;
    if (error) break;
    if (connection->deaf) {
      async::Event never(executor_);
      co_await never.wait(connection->left.get_token());
      break;
    }
    bytes_.append(room.data(), bytes);
    connection->inbox.append(room.data(), bytes);
    collect(*connection);
  }
  if (!connection->left.stop_requested()) {
    connection->close();
    connection_closed_.set();
  }
  connection->news.set();
  std::erase(connections_, connection);
}

void ScriptedServer::collect(Connection& connection) {
  while (const auto size = whole_request(connection.inbox)) {
    ReceivedRequest request;
    request.connection = connection.number;
    const std::size_t head = connection.inbox.find("\r\n\r\n") + 4;
    request.line = connection.inbox.substr(0, connection.inbox.find("\r\n"));
    request.head = connection.inbox.substr(0, head);
    request.body = connection.inbox.substr(head, *size - head);
    connection.inbox.erase(0, *size);
    requests_.push_back(std::move(request));
    ++connection.waiting;
    connection.news.set();
    request_arrived_.set();
  }
}

async::awaitable<void> ScriptedServer::answer(std::shared_ptr<Connection> connection) {
  for (;;) {
    co_await connection->news.wait();
    connection->news.reset();
    while (connection->waiting > 0) {
      --connection->waiting;
      Reply reply = Reply::whole(500, "text/plain", "nothing was scripted");
      if (!replies_.empty()) {
        reply = std::move(replies_.front());
        replies_.pop_front();
      } else if (standing_) {
        reply = *standing_;
      }
      connection->busy = true;
      const bool open = co_await perform(*connection, reply);
      connection->busy = false;
      if (!open) co_return;
    }
    if (connection->left.stop_requested()) co_return;
  }
}

async::awaitable<bool> ScriptedServer::perform(Connection& connection, const Reply& reply) {
  const std::stop_token left = connection.left.get_token();
  for (const Reply::Step& step : reply.steps()) {
    if (const auto* send = std::get_if<Reply::Send>(&step)) {
      const auto buffer = asio::buffer(send->bytes);
      const auto result = co_await asio::async_write(connection.socket, buffer, kToken);
      if (std::get<0>(result)) co_return false;
    } else if (const auto* gate = std::get_if<Reply::Gate>(&step)) {
      const bool open = co_await gate->event->wait(left);
      if (!open) co_return false;
    } else if (const auto* signal = std::get_if<Reply::Signal>(&step)) {
      signal->event->set();
    } else if (std::get<Reply::End>(step) == Reply::End::hang) {
      async::Event never(executor_);
      co_await never.wait(left);
      co_return false;
    } else {
      if (std::get<Reply::End>(step) == Reply::End::reset) {
        IoError ignored;
        connection.socket.set_option(asio::socket_base::linger(true, 0), ignored);
      }
      connection.close();
      co_return false;
    }
  }
  co_return true;
}

void ScriptedServer::answer_now(Reply reply) {
  for (const auto& connection : connections_) {
    if (connection->inbox.empty()) continue;
    connection->deaf = true;
    connection->inbox.clear();
    replies_.push_front(std::move(reply));
    ++connection->waiting;
    connection->news.set();
    return;
  }
}

void ScriptedServer::reply(Reply next) { replies_.push_back(std::move(next)); }
void ScriptedServer::reply_always(Reply standing) {
  standing_ = std::make_unique<Reply>(std::move(standing));
}

std::size_t ScriptedServer::connections_open() const {
  return static_cast<std::size_t>(
      std::count_if(connections_.begin(), connections_.end(),
                    [](const auto& connection) { return !connection->left.stop_requested(); }));
}

void ScriptedServer::drop_idle() {
  for (const auto& connection : connections_) {
    if (!connection->busy && connection->waiting == 0) connection->close();
  }
}

async::awaitable<void> ScriptedServer::close() {
  if (acceptor_) {
    IoError ignored;
    acceptor_->descriptor.close(ignored);
    if (!acceptor_->path.empty()) ::unlink(acceptor_->path.c_str());
    acceptor_.reset();
  }
  for (const auto& connection : connections_) connection->close();
  co_await tasks_.join();
}

}  // namespace werk::test
