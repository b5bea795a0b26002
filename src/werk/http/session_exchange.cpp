// The Exchange half of a Session: body in, answer out.
#include <fmt/format.h>

#include <algorithm>
#include <boost/asio/post.hpp>
#include <boost/asio/use_awaitable.hpp>

#include "werk/base/assert.hpp"
#include "werk/base/text.hpp"
#include "werk/http/session.hpp"

namespace werk::http {

namespace asio = boost::asio;

namespace {

// A handler that streams faster than the client's kernel ever fills would keep the loop for itself.
constexpr unsigned kSendsAtOnceMax = 64;

std::size_t total(std::span<const std::string_view> parts) {
  std::size_t bytes = 0;
  for (const std::string_view part : parts) bytes += part.size();
  return bytes;
}

bool asks_to_close(const Headers& headers) {
  const auto connection = headers.find("connection");
  return connection && equals_ignoring_case(*connection, "close");
}

bool has_no_body(int status) { return status / 100 == 1 || status == 204 || status == 304; }

}  // namespace

std::stop_token Session::gone() const {
  if (!stop_) {
    stop_.emplace();
    if (gone_) stop_->request_stop();
  }
  return stop_->get_token();
}

tl::unexpected<Error> Session::client_left() const {
  return fail(ErrorCode::cancelled, Origin::client, "the client has left");
}

tl::unexpected<Error> Session::refuse_body(ErrorCode code, std::string message) {
  body_error_ = Error{code, std::move(message), Origin::client};
  return fail(*body_error_);
}

async::awaitable<Result<std::string_view>> Session::read_body() {
  if (body_error_) co_return fail(*body_error_);
  const std::uint64_t declared = request_.content_length.value_or(0);
  if (declared > body_bytes_max_) {
    co_return refuse_body(ErrorCode::payload_too_large,
                          fmt::format("the body has {} bytes; at most {} are accepted here",
                                      declared, body_bytes_max_));
  }
  for (;;) {
    if (gone_) co_return client_left();
    if (parser_.body_done()) {
      watch_client();
      co_return std::string_view();
    }
    const BodyStep step = parser_.body(stream_->unread());
    stream_->consume(step.used);
    body_bytes_ += step.piece.size();
    if (body_bytes_ > body_bytes_max_) {
      co_return refuse_body(
          ErrorCode::payload_too_large,
          fmt::format("the body is longer than the {} bytes accepted here", body_bytes_max_));
    }
    if (step.state == Parse::failed) {
      co_return refuse_body(ErrorCode::invalid_request, std::string(parser_.failure().message));
    }
    if (!step.piece.empty()) co_return step.piece;
    if (step.used > 0) continue;
    if (stream_->full())
      co_return refuse_body(ErrorCode::invalid_request, "the chunked body is malformed");
    if (stream_->end() != StreamEnd::open) {
      left();
      co_return client_left();
    }
    if (continue_due_ && stream_->unread().empty()) {
      const std::array<std::string_view, 1> parts = {"HTTP/1.1 100 Continue\r\n\r\n"};
      const std::size_t sent = stream_->send_now(parts);
      const bool ok = co_await send_rest(parts, sent);
      if (!ok) co_return client_left();
    }
    continue_due_ = false;
    set_limit(Limit::body, context_.limits.body_stall_time);
    const std::uint64_t left_over =
        declared > body_bytes_ ? declared - body_bytes_ : 4 * Stream::kBufferMin;
    co_await stream_->arrival(std::min<std::uint64_t>(left_over + 1024, Stream::kBufferMax));
    const bool stalled = limit_passed_;
    set_limit(Limit::none, {});
    if (stalled)
      co_return refuse_body(ErrorCode::invalid_request, "the request body stopped arriving");
  }
}

// A body that nobody read, but that has arrived, does not cost the connection.
bool Session::take_buffered_body() {
  if (body_error_) return false;
  while (!parser_.body_done()) {
    const BodyStep step = parser_.body(stream_->unread());
    stream_->consume(step.used);
    if (step.used == 0 || step.state == Parse::failed) return false;
  }
  return true;
}

Persistence Session::persistence(const ResponseHead& head) {
  const bool close = context_.draining || !parser_.body_done() || !parser_.keep_alive() ||
                     asks_to_close(head.headers);
  if (close) reusable_ = false;
  return close ? Persistence::close : Persistence::keep_alive;
}

void Session::frame_head(const ResponseHead& head, Framing framing, std::uint64_t length,
                         Persistence keep) {
  AnswerFrame frame;
  frame.framing = framing;
  frame.length = length;
  frame.persistence = keep;
  frame.request_version = request_.version;
  frame.date = context_.date.at(std::time(nullptr));
  out_.clear();
  append_response_head(out_, head, frame);
}

bool Session::needs_turn(std::size_t sent, std::span<const std::string_view> parts) {
  return sent < total(parts) || ++sends_at_once_ >= kSendsAtOnceMax;
}

async::awaitable<bool> Session::send_rest(std::span<const std::string_view> parts,
                                          std::size_t sent) {
  sends_at_once_ = 0;
  if (sent == total(parts)) {
    co_await asio::post(context_.executor, asio::use_awaitable);
    co_return !gone_;
  }
  const bool ok = co_await stream_->send_rest(parts, sent, Stream::Interrupt::never);
  if (!ok && !gone_) left();
  co_return ok;
}

async::awaitable<Status> Session::respond(ResponseHead head, std::string_view body) {
  WERK_ASSERT(!started_);
  started_ = true;
  finished_ = true;
  if (gone_) co_return client_left();
  if (!parser_.body_done() && !take_buffered_body()) lingers_ = true;
  const bool bare = has_no_body(head.status);
  frame_head(head, bare ? Framing::none : Framing::length, body.size(), persistence(head));
  std::array<std::string_view, 2> parts = {out_, body};
  if (bare || request_.method == "HEAD") parts[1] = {};
  const std::size_t sent = stream_->send_now(parts);
  if (needs_turn(sent, parts)) {
    const bool ok = co_await send_rest(parts, sent);
    if (!ok) co_return client_left();
  }
  co_return Status();
}

async::awaitable<Status> Session::start(ResponseHead head, std::string_view first) {
  WERK_ASSERT(!started_);
  started_ = true;
  if (gone_) co_return client_left();
  const bool old = request_.version < 11;
  const bool bare = has_no_body(head.status);
  if (old) reusable_ = false;
  framing_ = bare ? Framing::none : (old ? Framing::until_close : Framing::chunked);
  const Persistence keep = persistence(head);
  frame_head(head, framing_, 0, old ? Persistence::close : keep);
  if (request_.method == "HEAD") framing_ = Framing::none;
  const bool chunked = framing_ == Framing::chunked && !first.empty();
  const ChunkHead chunk(first.size());
  std::array<std::string_view, 4> parts = {out_, {}, {}, {}};
  if (framing_ != Framing::none) parts[2] = first;
  if (chunked) {
    parts[1] = chunk.view();
    parts[3] = "\r\n";
  }
  const std::size_t sent = stream_->send_now(parts);
  if (needs_turn(sent, parts)) {
    const bool ok = co_await send_rest(parts, sent);
    if (!ok) co_return client_left();
  }
  co_return Status();
}

async::awaitable<Status> Session::write(std::string_view bytes) {
  WERK_ASSERT(started_ && !finished_);
  if (gone_) co_return client_left();
  if (bytes.empty() || framing_ == Framing::none) co_return Status();
  const ChunkHead chunk(bytes.size());
  std::array<std::string_view, 3> parts = {chunk.view(), bytes, "\r\n"};
  if (framing_ == Framing::until_close) parts = {bytes, {}, {}};
  const std::size_t sent = stream_->send_now(parts);
  if (needs_turn(sent, parts)) {
    const bool ok = co_await send_rest(parts, sent);
    if (!ok) co_return client_left();
  }
  co_return Status();
}

async::awaitable<Status> Session::finish(std::string_view last) {
  WERK_ASSERT(started_ && !finished_);
  finished_ = true;
  if (gone_) co_return client_left();
  if (framing_ == Framing::none) co_return Status();
  const ChunkHead chunk(last.size());
  std::array<std::string_view, 3> parts = {std::string_view(), last, {}};
  if (framing_ == Framing::chunked) {
    if (!last.empty()) parts[0] = chunk.view();
    parts[2] = last.empty() ? "0\r\n\r\n" : "\r\n0\r\n\r\n";
  }
  const std::size_t sent = stream_->send_now(parts);
  if (needs_turn(sent, parts)) {
    const bool ok = co_await send_rest(parts, sent);
    if (!ok) co_return client_left();
  }
  co_return Status();
}

void Session::break_off() {
  if (!started_) return;
  finished_ = true;
  reusable_ = false;
}

}  // namespace werk::http
