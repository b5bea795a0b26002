// RawClient: a socket inside the test's loop that sends exactly the bytes it is told and keeps
// whatever comes back; for tests of servers. Reading can be paused. Destroying it closes the
// connection in order; reset() breaks it. Loop thread only.
#pragma once

#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <array>
#include <boost/asio/generic/stream_protocol.hpp>
#include <cstring>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "werk/async/awaitable.hpp"
#include "werk/base/assert.hpp"

namespace werk::test {

class RawClient {
 public:
  RawClient(const async::Executor& executor, std::uint16_t port) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    connect(executor, AF_INET, reinterpret_cast<sockaddr*>(&address), sizeof address);
  }
  RawClient(const async::Executor& executor, const std::string& unix_path) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    WERK_ASSERT(unix_path.size() < sizeof address.sun_path);
    std::memcpy(address.sun_path, unix_path.data(), unix_path.size());
    connect(executor, AF_UNIX, reinterpret_cast<sockaddr*>(&address), sizeof address);
  }
  ~RawClient() { close(); }
  RawClient(const RawClient&) = delete;
  RawClient& operator=(const RawClient&) = delete;

  // Small requests only: it does not wait for room in the kernel. Bytes taken.
  std::size_t send(std::string_view bytes) {
    const ssize_t sent =
        ::send(state_->socket.native_handle(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
    return sent < 0 ? 0 : static_cast<std::size_t>(sent);
  }

  const std::string& received() const { return state_->received; }
  std::string take() { return std::exchange(state_->received, {}); }
  bool has(std::string_view text) const { return state_->received.find(text) != std::string::npos; }
  // The server's side ended, in order or not.
  bool ended() const { return state_->ended; }
  bool was_reset() const { return state_->reset; }

  void pause_reading() { state_->paused = true; }
  void resume_reading() {
    state_->paused = false;
    if (!state_->reading) read(state_);
  }
  void shutdown_send() { ::shutdown(state_->socket.native_handle(), SHUT_WR); }
  void close() {
    boost::system::error_code ignored;
    state_->socket.close(ignored);
  }
  void reset() {
    boost::system::error_code ignored;
    state_->socket.set_option(boost::asio::socket_base::linger(true, 0), ignored);
    close();
  }

 private:
  // Shared with the pending read, which completes after close().
  struct State {
    explicit State(const async::Executor& executor) : socket(executor) {}
    boost::asio::generic::stream_protocol::socket socket;
    std::array<char, 65536> room{};
    std::string received;
    bool ended = false;
    bool reset = false;
    bool paused = false;
    bool reading = false;
  };

  void connect(const async::Executor& executor, int family, const sockaddr* address,
               socklen_t size) {
    state_ = std::make_shared<State>(executor);
    const int fd = ::socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    WERK_ASSERT(::connect(fd, address, size) == 0);
    state_->socket.assign(boost::asio::generic::stream_protocol(family, 0), fd);
    state_->socket.native_non_blocking(true);
    read(state_);
  }

  static void read(const std::shared_ptr<State>& state) {
    state->reading = true;
    const auto on_read = [state](boost::system::error_code error, std::size_t bytes) {
      state->reading = false;
      state->received.append(state->room.data(), bytes);
      if (error) {
        state->ended = true;
        state->reset = error == boost::asio::error::connection_reset;
        return;
      }
      if (!state->paused) read(state);
    };
    state->socket.async_receive(boost::asio::buffer(state->room), on_read);
  }

  std::shared_ptr<State> state_;
};

}  // namespace werk::test
