#include "werk/http/stream.hpp"

#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <boost/asio/generic/stream_protocol.hpp>
#include <cerrno>
#include <cstring>
#include <vector>

#include "werk/http/waker.hpp"

namespace werk::http {

namespace asio = boost::asio;
using IoError = boost::system::error_code;

namespace {

constexpr std::size_t kPartsMax = 4;

struct Vectors {
  std::array<iovec, kPartsMax> entries{};
  std::size_t count = 0;
};

// The parts without their first `skip` bytes, as the kernel wants them.
Vectors vectors_of(std::span<const std::string_view> parts, std::size_t skip) {
  Vectors vectors;
  for (const std::string_view part : parts) {
    const std::size_t cut = std::min(skip, part.size());
    skip -= cut;
    if (part.size() == cut) continue;
    iovec& entry = vectors.entries[vectors.count++];
    entry.iov_base = const_cast<char*>(part.data() + cut);
    entry.iov_len = part.size() - cut;
  }
  return vectors;
}

}  // namespace

struct Stream::Core : std::enable_shared_from_this<Stream::Core> {
  Core(const async::Executor& loop, int descriptor, int address_family)
      : executor(loop), socket(loop), family(address_family) {
    IoError error;
    socket.assign(asio::generic::stream_protocol(address_family, 0), descriptor, error);
    if (error) {
      ::close(descriptor);
      end_state = StreamEnd::reset;
      return;
    }
    socket.native_non_blocking(true, error);
  }

  void start_read() {
    if (reading || end_state != StreamEnd::open) return;
    if (filled == capacity) extend();
    if (filled == capacity) return;
    reading = true;
    if (tls) return start_tls_read();
    socket.async_receive(asio::buffer(buffer.get() + filled, capacity - filled),
                         [core = shared_from_this()](const IoError& error, std::size_t bytes) {
                           core->on_read(error, bytes);
                         });
  }

  // The session may hold bytes that it has taken off the socket already.
  void start_tls_read() {
    const auto on_ready = [core = shared_from_this()](const IoError& error) {
      core->on_tls_ready(error);
    };
    if (tls->holds_bytes()) {
      asio::post(executor, [on_ready] { on_ready(IoError()); });
    } else {
      socket.async_wait(asio::socket_base::wait_read, on_ready);
    }
  }

  void on_tls_ready(const IoError& error) {
    if (error || end_state != StreamEnd::open) {
      on_read(error ? error : IoError(asio::error::operation_aborted), 0);
      return;
    }
    const TlsSession::Moved moved =
        tls->read(std::span<char>(buffer.get() + filled, capacity - filled));
    if (moved.step == TlsStep::ended) return on_read(asio::error::eof, moved.bytes);
    // Without a goodbye nobody knows whether this was the peer's end or somebody cut the line.
    if (moved.step == TlsStep::failed) return on_read(asio::error::connection_reset, moved.bytes);
    if (moved.bytes == 0) return start_tls_read();
    on_read(IoError(), moved.bytes);
  }

  void on_read(const IoError& error, std::size_t bytes) {
    reading = false;
    filled += bytes;
    if (end_state == StreamEnd::open && error) {
      end_state = error == asio::error::eof ? StreamEnd::eof : StreamEnd::reset;
    }
    if (reader.waiting()) {
      reader.wake_now();
      return;
    }
    const bool ended = end_state != StreamEnd::open;
    if (on_end && end_state != StreamEnd::closed && (ended || watch == Watch::end_or_bytes)) {
      const std::function<void()> callback = std::move(on_end);
      on_end = nullptr;
      callback();
      return;
    }
    if (interrupt == Interrupt::by_input && writer.waiting()) {
      writer.wake_now();
      return;
    }
    if (!ended && ahead) start_read();
  }

  // More room behind the unread bytes. The caller may still look at consumed bytes, so the old
  // buffer stays.
  void extend() {
    const std::size_t unread = filled - consumed;
    if (unread >= kBufferMax) return;
    const std::size_t size = std::clamp(2 * unread, kBufferMin, kBufferMax);
    auto larger = std::make_unique_for_overwrite<char[]>(size);
    std::memcpy(larger.get(), buffer.get() + consumed, unread);
    retired.push_back(std::move(buffer));
    buffer = std::move(larger);
    capacity = size;
    consumed = 0;
    filled = unread;
  }

  // Without this each message would begin where the last one ended, with ever less room.
  void forget_consumed() {
    retired.clear();
    if (reading || consumed < filled) return;
    consumed = 0;
    filled = 0;
  }

  // Makes room for a read that somebody waits for; nothing is looked at any more.
  void prepare(std::size_t room) {
    retired.clear();
    const std::size_t unread = filled - consumed;
    const std::size_t wanted = std::clamp(std::max(room, 2 * unread), kBufferMin, kBufferMax);
    if (capacity < wanted || (unread == 0 && capacity > 2 * wanted)) {
      auto other = std::make_unique_for_overwrite<char[]>(wanted);
      if (unread > 0) std::memcpy(other.get(), buffer.get() + consumed, unread);
      buffer = std::move(other);
      capacity = wanted;
    } else if (consumed > 0 && unread > 0) {
      std::memmove(buffer.get(), buffer.get() + consumed, unread);
    }
    consumed = 0;
    filled = unread;
  }

  std::size_t send(std::span<const std::string_view> parts, std::size_t skip) {
    return tls ? send_tls(parts, skip) : send_plain(parts, skip);
  }

  std::size_t send_tls(std::span<const std::string_view> parts, std::size_t skip) {
    std::size_t sent = 0;
    send_error = 0;
    for (const std::string_view part : parts) {
      const std::size_t cut = std::min(skip, part.size());
      skip -= cut;
      if (part.size() == cut) continue;
      const TlsSession::Moved moved = tls->write(part.substr(cut));
      sent += moved.bytes;
      if (moved.step == TlsStep::done) continue;
      send_error = moved.step == TlsStep::wants_room ? EAGAIN : EPIPE;
      break;
    }
    sent_total += sent;
    return sent;
  }

  std::size_t send_plain(std::span<const std::string_view> parts, std::size_t skip) {
    Vectors vectors = vectors_of(parts, skip);
    if (vectors.count == 0) return 0;
    msghdr message{};
    message.msg_iov = vectors.entries.data();
    message.msg_iovlen = vectors.count;
    const ssize_t sent = ::sendmsg(socket.native_handle(), &message, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent < 0) {
      send_error = errno;
      return 0;
    }
    send_error = 0;
    sent_total += static_cast<std::uint64_t>(sent);
    return static_cast<std::size_t>(sent);
  }

  void start_wait_for_room() {
    if (waiting_for_room) return;
    waiting_for_room = true;
    socket.async_wait(asio::socket_base::wait_write, [core = shared_from_this()](const IoError&) {
      core->waiting_for_room = false;
      core->writer.wake_now();
    });
  }

  // Nobody reads yet: the bytes are the handshake's.
  void start_wait_for_bytes() {
    reading = true;
    socket.async_wait(asio::socket_base::wait_read, [core = shared_from_this()](const IoError&) {
      core->reading = false;
      core->reader.wake_now();
    });
  }

  void close() {
    if (end_state != StreamEnd::closed) {
      if (tls) tls->say_goodbye();
      end_state = StreamEnd::closed;
      on_end = nullptr;
      IoError ignored;
      socket.close(ignored);
    }
    if (!reading) reader.wake_soon(executor);
  }

  async::Executor executor;
  asio::generic::stream_protocol::socket socket;
  int family;
  std::unique_ptr<TlsSession> tls;  // null: plain
  std::unique_ptr<char[]> buffer;
  std::vector<std::unique_ptr<char[]>> retired;
  std::size_t capacity = 0;
  std::size_t consumed = 0;  // unread bytes: [consumed, filled)
  std::size_t filled = 0;
  StreamEnd end_state = StreamEnd::open;
  bool reading = false;
  bool ahead = false;
  bool waiting_for_room = false;
  int send_error = 0;
  std::uint64_t sent_total = 0;
  Watch watch = Watch::end_only;
  Interrupt interrupt = Interrupt::never;
  std::function<void()> on_end;
  Waker reader;
  Waker writer;
};

Stream::Stream(const async::Executor& executor, int descriptor, int family)
    : core_(std::make_shared<Core>(executor, descriptor, family)) {}

Stream::~Stream() { core_->close(); }

int Stream::descriptor() const { return core_->socket.native_handle(); }
int Stream::family() const { return core_->family; }

std::span<char> Stream::unread() {
  return std::span<char>(core_->buffer.get() + core_->consumed, core_->filled - core_->consumed);
}

void Stream::consume(std::size_t bytes) {
  WERK_ASSERT(bytes <= core_->filled - core_->consumed);
  core_->consumed += bytes;
}

void Stream::forget_consumed() { core_->forget_consumed(); }
StreamEnd Stream::end() const { return core_->end_state; }
bool Stream::full() const { return core_->filled - core_->consumed >= kBufferMax; }

async::awaitable<void> Stream::arrival(std::size_t room) {
  core_->ahead = false;
  if (!core_->reading) {
    core_->prepare(room);
    core_->start_read();
    // Nothing will come: the caller looks at end() and full() in a fresh turn.
    if (!core_->reading) {
      return asio::post(core_->executor, asio::use_awaitable);
    }
  }
  return core_->reader.wait();
}

void Stream::wake() { core_->reader.wake_soon(core_->executor); }

void Stream::read_ahead() {
  core_->ahead = true;
  core_->start_read();
}

void Stream::on_end(Watch watch, std::function<void()> callback) {
  core_->watch = watch;
  core_->on_end = std::move(callback);
}

std::size_t Stream::send_now(std::span<const std::string_view> parts) {
  return core_->end_state == StreamEnd::closed ? 0 : core_->send(parts, 0);
}

async::awaitable<bool> Stream::send_rest(std::span<const std::string_view> parts, std::size_t sent,
                                         Interrupt interrupt) {
  const std::shared_ptr<Core> core =
      core_;  // the wait may outlive the Stream that was destroyed meanwhile
  std::size_t total = 0;
  for (const std::string_view part : parts) total += part.size();
  while (sent < total) {
    if (core->end_state == StreamEnd::closed) co_return false;
    const std::size_t taken = core->send(parts, sent);
    sent += taken;
    if (taken > 0 || core->send_error == EINTR) continue;
    if (core->send_error != EAGAIN && core->send_error != EWOULDBLOCK) co_return false;
    if (interrupt == Interrupt::by_input && core->filled > core->consumed) co_return false;
    core->interrupt = interrupt;
    core->start_wait_for_room();
    co_await core->writer.wait();
    core->interrupt = Interrupt::never;
  }
  co_return true;
}

async::awaitable<void> Stream::writable() {
  core_->start_wait_for_room();
  return core_->writer.wait();
}

async::awaitable<bool> Stream::secure(std::unique_ptr<TlsSession> session) {
  const std::shared_ptr<Core> core = core_;
  core->tls = std::move(session);
  while (core->end_state == StreamEnd::open) {
    const TlsStep step = core->tls->shake_hands();
    if (step == TlsStep::done) co_return true;
    if (step == TlsStep::wants_bytes) {
      core->start_wait_for_bytes();
      co_await core->reader.wait();
    } else if (step == TlsStep::wants_room) {
      core->start_wait_for_room();
      co_await core->writer.wait();
    } else {
      co_return false;
    }
  }
  co_return false;
}

const TlsSession* Stream::tls() const { return core_->tls.get(); }

bool Stream::sending() const { return core_->writer.waiting(); }
std::uint64_t Stream::bytes_sent() const { return core_->sent_total; }

void Stream::shutdown_send() {
  IoError ignored;
  core_->socket.shutdown(asio::socket_base::shutdown_send, ignored);
}

void Stream::close() { core_->close(); }

}  // namespace werk::http
