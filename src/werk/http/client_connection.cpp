#include "werk/http/client_connection.hpp"

#include <fmt/format.h>

#include <cerrno>

#include "werk/http/sockets.hpp"

namespace werk::http {

namespace {

constexpr std::size_t kRoomMax = 32 * 1024;
// How often a Unix listener whose line is full is asked again.
constexpr std::chrono::milliseconds kBusyPause{5};

std::string_view view(std::span<const char> bytes) {
  return std::string_view(bytes.data(), bytes.size());
}

std::string host_of(const Address& address) {
  if (!address.unix_path.empty()) return "localhost";
  const bool six = address.host.find(':') != std::string::npos;
  return fmt::format(fmt::runtime(six ? "[{}]:{}" : "{}:{}"), address.host, address.port);
}

bool may_have_body(std::string_view method) {
  return method == "POST" || method == "PUT" || method == "PATCH";
}

Error cut() {
  return Error{ErrorCode::engine_failed,
               "the engine closed the connection in the middle of its answer", Origin::engine};
}

Error stopped() { return Error{ErrorCode::cancelled, "the request to the engine was stopped"}; }

}  // namespace

ClientConnection::ClientConnection(std::unique_ptr<Stream> stream, const Address& address,
                                   std::size_t head_bytes_max)
    : stream_(std::move(stream)),
      address_(address),
      host_(host_of(address)),
      parser_(head_bytes_max) {}

async::awaitable<ClientConnection::Outcome> ClientConnection::ask(const ClientRequest& request,
                                                                  ResponseHead& head,
                                                                  Persistence persistence,
                                                                  std::stop_token stop) {
  ++uses_;
  head_in_ = false;
  parser_.restart(
      head, request.method == "HEAD" ? ResponseParser::Body::none : ResponseParser::Body::expected);
  RequestFrame frame;
  frame.method = request.method;
  frame.target = request.target;
  frame.host = host_;
  if (!request.body.empty() || may_have_body(request.method)) frame.length = request.body.size();
  frame.persistence = persistence;
  out_.clear();
  append_request_head(out_, request.headers, frame);
  const auto close_now = [this] { stream_->close(); };
  const std::stop_callback on_stop(stop, close_now);
  const std::array<std::string_view, 2> parts = {out_, request.body};
  const std::size_t sent = stream_->send_now(parts);
  sent_whole_ = sent == out_.size() + request.body.size();
  if (!sent_whole_) {
    // An engine may refuse a long body before it has read it: then its answer counts, not the rest
    // of the body.
    stream_->read_ahead();
    sent_whole_ = co_await stream_->send_rest(parts, sent, Stream::Interrupt::by_input);
  }
  bool any = false;
  for (;;) {
    if (stop.stop_requested()) co_return Outcome::stopped;
    const std::string_view bytes = view(stream_->unread());
    if (!bytes.empty()) {
      any = true;
      std::size_t used = 0;
      const Parse state = parser_.head(bytes, used);
      stream_->consume(used);
      head_in_ = state == Parse::done;
      if (head_in_) co_return Outcome::head;
      if (state == Parse::failed || stream_->full()) co_return Outcome::malformed;
    }
    if (stream_->end() != StreamEnd::open) co_return any ? Outcome::broken : Outcome::lost;
    co_await stream_->arrival(room_);
  }
}

async::awaitable<Result<std::string_view>> ClientConnection::read_some(std::stop_token stop) {
  const auto close_now = [this] { stream_->close(); };
  const std::stop_callback on_stop(stop, close_now);
  for (;;) {
    if (stop.stop_requested()) co_return fail(stopped());
    if (body_malformed_) {
      stream_->close();
      co_return fail(ErrorCode::engine_failed, Origin::engine,
                     fmt::format("the engine's answer is malformed: {}", parser_.failure()));
    }
    if (parser_.body_done()) co_return std::string_view();
    const BodyStep step = parser_.body(stream_->unread());
    stream_->consume(step.used);
    body_malformed_ = step.state == Parse::failed;
    // What came before the fault still counts.
    if (!step.piece.empty()) co_return step.piece;
    if (body_malformed_) continue;
    if (step.used > 0) continue;
    if (stream_->end() == StreamEnd::eof && stream_->unread().empty() && parser_.end_of_stream())
      continue;
    if (stream_->end() != StreamEnd::open || stream_->full()) {
      stream_->close();
      co_return fail(cut());
    }
    co_await stream_->arrival(room_);
    if (stream_->unread().size() >= room_ && room_ < kRoomMax) room_ *= 2;
  }
}

bool ClientConnection::reusable() const {
  return head_in_ && sent_whole_ && stream_->end() == StreamEnd::open && parser_.body_done() &&
         parser_.keep_alive() && stream_->unread().empty();
}

namespace {

struct Attempt {
  std::unique_ptr<Stream> stream;
  int error = 0;
};

async::awaitable<Attempt> attempt(const async::Executor& executor, const Address& address,
                                  std::stop_token stop) {
  Attempt result;
  const Connecting begun = begin_to_connect(address);
  result.error = begun.error;
  if (begun.descriptor < 0) co_return result;
  result.stream = std::make_unique<Stream>(executor, begun.descriptor, begun.family);
  if (begun.error == 0) co_return result;
  const auto close_now = [&result] { result.stream->close(); };
  const std::stop_callback on_stop(stop, close_now);
  if (!stop.stop_requested()) co_await result.stream->writable();
  result.error = stop.stop_requested() ? ECANCELED : connect_error(result.stream->descriptor());
  co_return result;
}

}  // namespace

async::awaitable<Result<std::unique_ptr<Stream>>> connect_to(const async::Executor& executor,
                                                             async::Clock& clock,
                                                             const Address& address,
                                                             async::Duration limit,
                                                             std::stop_token stop) {
  auto places = candidates(address);
  if (!places) co_return pass_on(places);
  const async::Deadline deadline(clock, limit, stop);
  std::size_t place = 0;
  int error = 0;
  while (place < places->size() && !deadline.token().stop_requested()) {
    Attempt made = co_await attempt(executor, (*places)[place], deadline.token());
    error = made.error;
    if (error == 0) co_return std::move(made.stream);
    if (error == EAGAIN) {
      co_await async::sleep_for(clock, executor, kBusyPause, deadline.token());
    } else {
      ++place;
    }
  }
  if (stop.stop_requested()) co_return fail(stopped());
  if (deadline.expired()) {
    co_return fail(ErrorCode::engine_timeout, Origin::engine,
                   fmt::format("connecting to {} took too long", text_of(address)));
  }
  co_return fail(ErrorCode::engine_failed, Origin::engine,
                 fmt::format("cannot connect to {}: {}", text_of(address), os_message(error)));
}

}  // namespace werk::http
