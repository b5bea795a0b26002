#include "werk/http/client_connection.hpp"

#include <fmt/format.h>

namespace werk::http {

namespace {

constexpr std::size_t kRoomMax = 32 * 1024;

std::string_view view(std::span<const char> bytes) {
  return std::string_view(bytes.data(), bytes.size());
}

// As browsers write it: the port is left out where the scheme says it.
std::string host_of(const Address& address) {
  constexpr std::uint16_t kHttpPort = 80;
  constexpr std::uint16_t kHttpsPort = 443;
  if (!address.unix_path.empty()) return "localhost";
  const bool tls = !address.tls_name.empty();
  const std::string& name = tls ? address.tls_name : address.host;
  const std::string host = name.find(':') == std::string::npos ? name : fmt::format("[{}]", name);
  if (address.port == (tls ? kHttpsPort : kHttpPort)) return host;
  return fmt::format("{}:{}", host, address.port);
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

bool ClientConnection::end_is_here() {
  if (!parser_.body_done() && !body_malformed_) {
    const BodyStep step = parser_.body(stream_->unread());
    stream_->consume(step.used);
    body_malformed_ = step.state == Parse::failed;
  }
  return parser_.body_done();
}

bool ClientConnection::reusable() const {
  return head_in_ && sent_whole_ && stream_->end() == StreamEnd::open && parser_.body_done() &&
         parser_.keep_alive() && stream_->unread().empty();
}

}  // namespace werk::http
