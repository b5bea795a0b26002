#include "werk/http/session.hpp"

#include <exception>

#include "werk/base/log.hpp"
#include "werk/base/text.hpp"
#include "werk/http/peer.hpp"

namespace werk::http {

namespace {

constexpr std::chrono::seconds kLingerTime{5};
constexpr std::uint64_t kBodyBytesMax = 1024 * 1024;

std::string_view view(std::span<const char> bytes) {
  return std::string_view(bytes.data(), bytes.size());
}

}  // namespace

Session::Session(ServerContext& context, std::unique_ptr<Stream> stream, std::string peer,
                 bool loopback, Admission admission)
    : context_(context),
      stream_(std::move(stream)),
      parser_(context.limits.head_bytes_max),
      admission_(admission) {
  request_.peer = std::move(peer);
  request_.peer_is_loopback = loopback;
}

async::awaitable<void> Session::run() {
  for (;;) {
    const Next next = co_await read_head();
    if (next == Next::end) break;
    co_await serve_one();
    served_ = true;
    if (!reusable_) break;
  }
  if (lingers_ || !stream_->unread().empty()) co_await linger();
  stream_->close();
}

async::awaitable<Session::Next> Session::read_head() {
  stream_->forget_consumed();
  request_.method.clear();
  parser_.restart(request_);
  bool begun = false;
  set_limit(Limit::none, {});
  for (;;) {
    // Some clients send an empty line behind a body; it belongs to no request.
    while (!begun && view(stream_->unread()).starts_with("\r\n")) stream_->consume(2);
    const std::string_view bytes = view(stream_->unread());
    if (!bytes.empty() && (begun || bytes != "\r")) {
      begun = true;
      std::size_t used = 0;
      const Parse state = parser_.head(bytes, used);
      stream_->consume(used);
      if (state == Parse::done) {
        set_limit(Limit::none, {});
        co_return Next::request;
      }
      ParseFailure failure = parser_.failure();
      if (state != Parse::failed && stream_->full())
        failure = {431, "the head of the message is too large"};
      if (state == Parse::failed || stream_->full()) {
        co_await answer_error(failure.status, failure.message);
        co_return Next::end;
      }
    }
    if (stream_->end() != StreamEnd::open) co_return Next::end;
    if (limit_passed_) {
      if (begun) co_await answer_error(408, "the head of the request did not arrive in time");
      co_return Next::end;
    }
    const Limit wanted = begun ? Limit::head : Limit::idle;
    if (limit_ != wanted)
      set_limit(wanted, begun ? context_.limits.head_time : context_.limits.idle_time);
    co_await stream_->arrival(Stream::kBufferMin);
  }
}

void Session::begin_exchange() {
  started_ = false;
  finished_ = false;
  framing_ = Framing::none;
  body_bytes_ = 0;
  body_bytes_max_ = kBodyBytesMax;
  body_error_.reset();
  stop_.reset();
  const auto expect = parser_.body_done() ? std::nullopt : request_.headers.find("expect");
  continue_due_ = expect && request_.version >= 11 && equals_ignoring_case(*expect, "100-continue");
  handling_ = true;
}

void Session::end_exchange() {
  handling_ = false;
  half_closed_ = false;
  stop_.reset();
  stream_->on_end(Stream::Watch::end_only, nullptr);
  if (gone_) return;
  if (!parser_.body_done() && !take_buffered_body()) {
    reusable_ = false;
    lingers_ = true;
  }
}

async::awaitable<void> Session::serve_one() {
  begin_exchange();
  if (parser_.body_done()) watch_client();
  if (admission_ == Admission::refuse) {
    co_await answer_error(503, "too many connections are open; try again in a moment");
    end_exchange();
    co_return;
  }
  bool threw = false;
  try {
    co_await context_.handler.handle(*this);
  } catch (const std::exception& error) {
    threw = true;
    log::error("answering {} {} threw: {}", request_.method, request_.path, error.what());
  } catch (...) {
    threw = true;
    log::error("answering {} {} threw", request_.method, request_.path);
  }
  if (!started_ && !gone_) co_await answer_error(500, "the request could not be answered");
  if (threw || !finished_) reusable_ = false;
  end_exchange();
}

async::awaitable<void> Session::answer_error(int status, std::string_view message) {
  reusable_ = false;
  lingers_ = true;
  started_ = true;
  finished_ = true;
  const std::string body = context_.error_body(status, message);
  ResponseHead head;
  head.status = status;
  head.headers.add("Content-Type", "application/json");
  if (status == 503) head.headers.add("Retry-After", "1");
  frame_head(head, Framing::length, body.size(), Persistence::close);
  std::array<std::string_view, 2> parts = {out_, body};
  if (request_.method == "HEAD") parts[1] = {};
  const std::size_t sent = stream_->send_now(parts);
  if (needs_turn(sent, parts)) co_await send_rest(parts, sent);
}

// Closing a socket with unread input resets it, and a reset can overtake the answer: so the input
// is read away first.
async::awaitable<void> Session::linger() {
  if (gone_ || stream_->end() != StreamEnd::open) co_return;
  stream_->shutdown_send();
  set_limit(Limit::linger, kLingerTime);
  while (stream_->end() == StreamEnd::open && !limit_passed_) {
    stream_->consume(stream_->unread().size());
    co_await stream_->arrival(Stream::kBufferMin);
  }
}

void Session::set_limit(Limit limit, std::chrono::seconds time) {
  limit_passed_ = false;
  limit_ = time.count() > 0 ? limit : Limit::none;
  if (limit_ != Limit::none) limit_at_ = context_.clock.now() + time;
}

void Session::watch_client() {
  if (stream_->end() != StreamEnd::open) {
    on_input_end();
    return;
  }
  stream_->forget_consumed();
  stream_->on_end(Stream::Watch::end_only, [this] { on_input_end(); });
  stream_->read_ahead();
}

void Session::on_input_end() {
  if (!handling_ || gone_ || half_closed_) return;
  if (stream_->end() == StreamEnd::eof &&
      look_at_peer(stream_->descriptor(), stream_->family()) == Peer::present) {
    half_closed_ = true;
    context_.look_soon();
    return;
  }
  left();
}

void Session::left() {
  gone_ = true;
  reusable_ = false;
  stream_->close();
  if (stop_) stop_->request_stop();
}

bool Session::tick(async::TimePoint now) {
  if (limit_ != Limit::none && !limit_passed_ && now >= limit_at_) {
    limit_passed_ = true;
    stream_->wake();
  }
  const auto stall_time = context_.limits.write_stall_time;
  if (!stream_->sending() || stall_time.count() <= 0) {
    send_stalls_at_.reset();
  } else if (!send_stalls_at_ || stream_->bytes_sent() != send_seen_) {
    send_seen_ = stream_->bytes_sent();
    send_stalls_at_ = now + stall_time;
  } else if (now >= *send_stalls_at_) {
    left();
  }
  if (!half_closed_ || !handling_ || gone_) return false;
  if (look_at_peer(stream_->descriptor(), stream_->family()) == Peer::present) return true;
  left();
  return false;
}

void Session::close_if_idle() {
  if (limit_ == Limit::idle && served_) stream_->close();
}

void Session::close_now() { left(); }

}  // namespace werk::http
