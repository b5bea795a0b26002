#include "bench/support/crowd.hpp"

#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <stdexcept>

namespace werk::bench {
namespace {

constexpr std::size_t kBufferBytes = 64 * 1024;

}  // namespace

Crowd::Crowd() : poll_(::epoll_create1(EPOLL_CLOEXEC)), buffer_(kBufferBytes) {}

Crowd::~Crowd() {
  leave();
  ::close(poll_);
}

void Crowd::ask(const CrowdAsk& ask, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) {
    auto stream = std::make_unique<Stream>();
    stream->file = connect_to(ask.endpoint, Blocking::no);
    stream->expected_hash = ask.expected_hash;
    stream->text = TextReader(ask.dialect);
    stream->last = steady_now();
    epoll_event event{};
    event.events = EPOLLIN;
    event.data.u64 = streams_.size();
    ::epoll_ctl(poll_, EPOLL_CTL_ADD, stream->file, &event);
    const std::string& request = ask.request;
    if (::send(stream->file, request.data(), request.size(), MSG_NOSIGNAL) !=
        static_cast<ssize_t>(request.size())) {
      throw std::runtime_error("can't send");
    }
    streams_.push_back(std::move(stream));
    ++open_;
    ++waiting_;
    read_once(0);
  }
}

void Crowd::read_for(std::chrono::milliseconds length) {
  const SteadyTime end = steady_now() + length;
  while (steady_now() < end) read_once(5);
}

bool Crowd::read_to_end(std::chrono::milliseconds limit) {
  const SteadyTime end = steady_now() + limit;
  while (open_ > 0 && steady_now() < end) read_once(5);
  return open_ == 0;
}

void Crowd::leave() {
  for (const auto& stream : streams_) {
    if (stream->file >= 0) ::close(stream->file);
  }
  streams_.clear();
  open_ = waiting_ = 0;
}

void Crowd::read_once(int wait_ms) {
  std::array<epoll_event, 256> events;
  const int count = ::epoll_wait(poll_, events.data(), events.size(), wait_ms);
  for (int i = 0; i < count; ++i) read(*streams_[events[static_cast<std::size_t>(i)].data.u64]);
}

void Crowd::read(Stream& stream) {
  const ssize_t got = ::recv(stream.file, buffer_.data(), buffer_.size(), 0);
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (got <= 0) return end(stream, false);
  const std::uint64_t texts = stream.text.events();
  stream.reader.feed({buffer_.data(), static_cast<std::size_t>(got)}, stream.body);
  const bool done = stream.reader.done();
  stream.text.read(stream.body, done ? TextReader::More::ended : TextReader::More::comes);
  if (stream.text.events() > texts) {
    const SteadyTime now = steady_now();
    longest_wait_us_ = std::max(longest_wait_us_, microseconds_between(stream.last, now));
    stream.last = now;
    if (texts == 0) --waiting_;
  }
  if (!done) return;
  end(stream, stream.reader.status() == 200 && stream.text.hash() == stream.expected_hash);
}

// The connection stays, so that its server still holds what it holds for it.
void Crowd::end(Stream& stream, bool right) {
  ::epoll_ctl(poll_, EPOLL_CTL_DEL, stream.file, nullptr);
  ++(right ? right_ : broken_);
  --open_;
  if (stream.text.events() == 0) --waiting_;
}

}  // namespace werk::bench
