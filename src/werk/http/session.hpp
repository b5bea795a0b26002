// Session: one accepted connection, from its first byte to its close, and the Exchange of the
// request it is serving. Runs as one coroutine owned by the Server. Its limits in time are looked
// at by the server's tick, so that a request sets no timer. Inside http only, loop thread only.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "werk/async/clock.hpp"
#include "werk/http/exchange.hpp"
#include "werk/http/heads.hpp"
#include "werk/http/parser.hpp"
#include "werk/http/server.hpp"
#include "werk/http/stream.hpp"

namespace werk::http {

// What all sessions of a server share; owned by the server.
struct ServerContext {
  async::Executor executor;
  async::Clock& clock;
  ServerLimits limits;
  Handler& handler;
  ErrorBody error_body = default_error_body;
  DateText date = {};
  bool draining = false;
  bool closing = false;
  std::function<void()> look_soon = {};  // a half-closed client appeared: tick more often
};

class Session final : public Exchange {
 public:
  enum class Admission : std::uint8_t { serve, refuse };

  Session(ServerContext& context, std::unique_ptr<Stream> stream, std::string peer, bool loopback,
          Admission admission);

  // The whole life of the connection.
  async::awaitable<void> run();

  // From the server's tick: enforces limits, looks after half-closed clients. True while it wants
  // to be looked at soon.
  bool tick(async::TimePoint now);
  void close_if_idle();
  void close_now();

  const Request& request() const override { return request_; }
  void limit_body(std::uint64_t bytes_max) override { body_bytes_max_ = bytes_max; }
  async::awaitable<Result<std::string_view>> read_body() override;
  std::stop_token gone() const override;
  async::awaitable<Status> respond(ResponseHead head, std::string_view body) override;
  async::awaitable<Status> start(ResponseHead head, std::string_view first) override;
  async::awaitable<Status> write(std::string_view bytes) override;
  async::awaitable<Status> finish(std::string_view last) override;
  void break_off() override;
  bool started() const override { return started_; }

 private:
  enum class Limit : std::uint8_t { none, idle, head, body, linger };
  enum class Next : std::uint8_t { request, end };

  async::awaitable<Next> read_head();
  async::awaitable<void> serve_one();
  async::awaitable<void> answer_error(int status, std::string_view message);
  async::awaitable<void> linger();
  void begin_exchange();
  void end_exchange();
  void set_limit(Limit limit, std::chrono::seconds time);
  void on_input_end();
  void left();
  bool take_buffered_body();
  void watch_client();
  Persistence persistence(const ResponseHead& head);
  void frame_head(const ResponseHead& head, Framing framing, std::uint64_t length,
                  Persistence keep);
  tl::unexpected<Error> refuse_body(ErrorCode code, std::string message);
  tl::unexpected<Error> client_left() const;
  // Sends what the kernel did not take at once, or only lets others have a turn; false: the client
  // has left.
  async::awaitable<bool> send_rest(std::span<const std::string_view> parts, std::size_t sent);
  bool needs_turn(std::size_t sent, std::span<const std::string_view> parts);

  ServerContext& context_;
  std::unique_ptr<Stream> stream_;
  RequestParser parser_;
  Request request_;
  std::string out_;

  Limit limit_ = Limit::none;
  async::TimePoint limit_at_;
  bool limit_passed_ = false;
  std::uint64_t send_seen_ = 0;
  std::optional<async::TimePoint> send_stalls_at_;
  unsigned sends_at_once_ = 0;

  Admission admission_;
  bool served_ = false;
  bool handling_ = false;
  bool half_closed_ = false;
  bool gone_ = false;
  bool started_ = false;
  bool finished_ = false;
  bool continue_due_ = false;
  bool reusable_ = true;
  bool lingers_ = false;
  Framing framing_ = Framing::none;
  std::uint64_t body_bytes_ = 0;
  std::uint64_t body_bytes_max_ = 0;
  std::optional<Error> body_error_;
  mutable std::optional<std::stop_source> stop_;
};

}  // namespace werk::http
