// For the tests of this module: a server on a loopback port whose handler does, by path, the few
// things tests need, and a log of what it met. Its clock is moved by hand.
#pragma once

#include <gtest/gtest.h>

#include <fmt/format.h>
#include <string>
#include <vector>

#include "tests/support/loop_fixture.hpp"
#include "tests/support/manual_clock.hpp"
#include "tests/support/raw_client.hpp"
#include "werk/async/event.hpp"
#include "werk/http/server.hpp"

namespace werk::test {

class TestHandler final : public http::Handler {
 public:
  explicit TestHandler(async::Executor executor) : gate(executor), entered(executor) {}

  async::awaitable<void> handle(http::Exchange& exchange) override {
    const http::Request& request = exchange.request();
    seen.push_back(request.method + " " + request.target);
    last = request;
    entered.set();
    if (request.path == "/echo") return echo(exchange);
    if (request.path == "/stream") return stream(exchange);
    if (request.path == "/last") return last_words(exchange);
    if (request.path == "/wait") return wait(exchange);
    if (request.path == "/flood") return flood(exchange);
    if (request.path == "/throw") return throw_up(exchange);
    if (request.path == "/silent") return nothing();
    if (request.path == "/broken") return broken(exchange);
    return hello(exchange);
  }

  async::Event gate;
  async::Event entered;
  std::vector<std::string> seen;
  std::vector<std::string> notes;
  http::Request last;
  std::uint64_t body_bytes_max = 1024 * 1024;
  std::uint64_t flooded = 0;
  std::size_t leavers = 0;

 private:
  async::awaitable<void> hello(http::Exchange& exchange) {
    http::ResponseHead head;
    head.headers.add("Content-Type", "text/plain");
    const auto sent = co_await exchange.respond(std::move(head), "hello");
    if (!sent) notes.emplace_back(name_of(sent.error().code));
  }
  async::awaitable<void> echo(http::Exchange& exchange) {
    exchange.limit_body(body_bytes_max);
    std::string body;
    for (;;) {
      const auto piece = co_await exchange.read_body();
      if (!piece) {
        notes.push_back(std::string(name_of(piece.error().code)) + ": " + piece.error().message);
        http::ResponseHead refusal;
        refusal.status = piece.error().code == ErrorCode::payload_too_large ? 413 : 400;
        co_await exchange.respond(std::move(refusal), "no");
        co_return;
      }
      if (piece->empty()) break;
      body.append(*piece);
    }
    http::ResponseHead head;
    co_await exchange.respond(std::move(head), body);
  }
  async::awaitable<void> stream(http::Exchange& exchange) {
    http::ResponseHead head;
    co_await exchange.start(std::move(head), "one");
    co_await gate.wait(exchange.gone());
    const auto written = co_await exchange.write("two");
    if (!written) notes.emplace_back(name_of(written.error().code));
    co_await exchange.finish();
  }
  async::awaitable<void> last_words(http::Exchange& exchange) {
    http::ResponseHead head;
    co_await exchange.start(std::move(head), "one");
    co_await exchange.finish("two");
  }
  async::awaitable<void> wait(http::Exchange& exchange) {
    const bool opened = co_await gate.wait(exchange.gone());
    if (!opened) ++leavers;
    notes.emplace_back(opened ? "opened" : "left");
    http::ResponseHead head;
    co_await exchange.respond(std::move(head), "done");
  }
  async::awaitable<void> flood(http::Exchange& exchange) {
    const std::string block(64 * 1024, 'x');
    http::ResponseHead head;
    co_await exchange.start(std::move(head));
    for (;;) {
      const auto written = co_await exchange.write(block);
      if (!written) break;
      flooded += block.size();
    }
    ++leavers;
  }
  async::awaitable<void> throw_up(http::Exchange& exchange) {
    if (exchange.request().query == "late") {
      http::ResponseHead head;
      co_await exchange.start(std::move(head), "part");
    }
    static_cast<void>(std::string().at(1));
  }
  async::awaitable<void> nothing() { co_return; }
  async::awaitable<void> broken(http::Exchange& exchange) {
    http::ResponseHead head;
    co_await exchange.start(std::move(head), "part");
    exchange.break_off();
  }
};

class HttpFixture : public LoopFixture {
 protected:
  HttpFixture() : handler_(executor()) {}

  void SetUp() override { serve(http::ServerLimits()); }
  void TearDown() override { stop(); }

  void serve(http::ServerLimits limits) {
    server_ = std::make_unique<http::Server>(executor(), clock_, limits, handler_);
    const auto endpoint = server_->listen("127.0.0.1", 0);
    ASSERT_TRUE(endpoint);
    port_ = endpoint->port;
  }
  void stop() {
    if (!server_) return;
    run(server_->close());
    server_.reset();
  }

  std::unique_ptr<RawClient> connect() { return std::make_unique<RawClient>(executor(), port_); }

  void wait_for(const RawClient& client, std::string_view text) {
    run_until([&client, text] { return client.has(text) || client.ended(); });
    EXPECT_TRUE(client.has(text)) << "received: " << client.received();
  }
  void wait_for_end(const RawClient& client) {
    run_until([&client] { return client.ended(); });
  }
  void wait_for_requests(std::size_t count) {
    run_until([this, count] { return handler_.seen.size() >= count; });
  }
  // Everything an own connection receives until the server ends it.
  std::string exchange(std::string_view bytes) {
    const auto client = connect();
    client->send(bytes);
    wait_for_end(*client);
    return client->received();
  }

  static std::string body_of(const std::string& answer) {
    const std::size_t end = answer.find("\r\n\r\n");
    return end == std::string::npos ? std::string() : answer.substr(end + 4);
  }
  static std::size_t count(std::string_view text, std::string_view part) {
    std::size_t found = 0;
    for (std::size_t at = text.find(part); at != std::string_view::npos;
         at = text.find(part, at + 1))
      ++found;
    return found;
  }

  ManualClock clock_;
  TestHandler handler_;
  std::unique_ptr<http::Server> server_;
  std::uint16_t port_ = 0;
};

}  // namespace werk::test
