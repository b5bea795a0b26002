#include "werk/http/client.hpp"

#include <fcntl.h>

#include "tests/support/loop_fixture.hpp"
#include "tests/support/manual_clock.hpp"
#include "tests/support/raw_client.hpp"
#include "tests/support/scripted_server.hpp"
#include "tests/support/temporary_folder.hpp"

namespace werk::http {
namespace {

using test::Reply;
using namespace std::chrono_literals;

int count_open_descriptors() {
  int open = 0;
  for (int descriptor = 0; descriptor < 256; ++descriptor) {
    if (::fcntl(descriptor, F_GETFD) >= 0) ++open;
  }
  return open;
}

class ClientTest : public test::LoopFixture {
 protected:
  ClientTest()
      : more_(executor()), engine_(executor()), client_(executor(), clock_, ClientProfile()) {
    address_.unix_path = (folder_.path() / "engine").string();
    engine_.listen_unix(address_.unix_path);
  }
  void TearDown() override {
    response_.reset();
    run(engine_.close());
  }

  ClientRequest post(std::string_view body) {
    ClientRequest request;
    request.method = "POST";
    request.target = "/v1/chat/completions";
    request.headers.add("Content-Type", "application/json");
    request.body = body;
    return request;
  }

  async::awaitable<void> fetch_into(ClientRequest request, std::stop_token stop) {
    auto whole = co_await client_.fetch(address_, std::move(request), 1 << 20, stop);
    if (whole) {
      outcomes_.push_back(std::to_string(whole->status) + " " + whole->body);
    } else {
      outcomes_.push_back(std::string(name_of(whole.error().code)) + ": " + whole.error().message);
    }
  }
  async::awaitable<void> fetch_with(Client& client) {
    const auto whole = co_await client.fetch(address_, post("{}"), 1 << 20, std::stop_token());
    EXPECT_TRUE(whole);
  }
  async::awaitable<void> send_into(ClientRequest request, std::stop_token stop) {
    auto sent = co_await client_.send(address_, std::move(request), stop);
    if (sent) {
      response_ = std::move(*sent);
      outcomes_.push_back(std::to_string(response_->status));
    } else {
      outcomes_.emplace_back(name_of(sent.error().code));
    }
  }
  async::awaitable<void> read_into(std::stop_token stop) {
    auto piece = co_await response_->read_some(stop);
    outcomes_.push_back(piece ? "piece " + std::string(*piece)
                              : std::string(name_of(piece.error().code)));
  }
  std::string fetch(std::string_view body = "{}") {
    run(fetch_into(post(body), {}));
    return outcomes_.empty() ? "" : outcomes_.back();
  }
  std::string send() {
    run(send_into(post("{}"), {}));
    return outcomes_.back();
  }
  std::string read() {
    run(read_into({}));
    return outcomes_.back();
  }

  test::TemporaryFolder folder_;
  test::ManualClock clock_;
  async::Event more_;
  test::ScriptedServer engine_;
  Client client_;
  Address address_;
  std::unique_ptr<Response> response_;
  std::vector<std::string> outcomes_;
};

TEST_F(ClientTest, ARequestGoesOutWithHostLengthAndBodyAndItsAnswerComesBack) {
  engine_.reply(Reply::whole(200, "text/plain", "fine"));
  EXPECT_EQ(fetch("{\"a\":1}"), "200 fine");
  ASSERT_EQ(engine_.requests().size(), 1u);
  EXPECT_EQ(engine_.requests()[0].line, "POST /v1/chat/completions HTTP/1.1");
  EXPECT_EQ(
      engine_.requests()[0].head,
      "POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
      "Content-Length: 7\r\n\r\n");
  EXPECT_EQ(engine_.requests()[0].body, "{\"a\":1}");
}

TEST_F(ClientTest, AConnectionIsUsedAgainAfterAWholeAnswer) {
  for (int call = 0; call < 3; ++call) {
    engine_.reply(Reply::whole(200, "text/plain", "fine"));
    EXPECT_EQ(fetch(), "200 fine");
  }
  EXPECT_EQ(engine_.connections_accepted(), 1u);
  EXPECT_EQ(client_.idle_connections(), 1u);
}

TEST_F(ClientTest, AnIdleConnectionIsGivenUpBeforeTheEngineWould) {
  engine_.reply_always(Reply::whole(200, "text/plain", "fine"));
  fetch();
  EXPECT_EQ(client_.idle_connections(), 1u);
  clock_.advance(4s);
  EXPECT_EQ(client_.idle_connections(), 0u);
  fetch();
  EXPECT_EQ(engine_.connections_accepted(), 2u);
}

TEST_F(ClientTest, AConnectionTheEngineClosedWhileIdleIsNotedAtOnce) {
  engine_.reply_always(Reply::whole(200, "text/plain", "fine"));
  fetch();
  engine_.drop_idle();
  run_until([this] { return client_.idle_connections() == 0; });
  EXPECT_EQ(fetch(), "200 fine");
  EXPECT_EQ(engine_.requests().size(), 2u);
}

TEST_F(ClientTest, AKeptConnectionThatDiesAsTheCallIsWrittenIsReplacedExactlyOnce) {
  engine_.reply(Reply::whole(200, "text/plain", "fine"));
  fetch();
  engine_.reply(Reply().end(Reply::End::close));
  engine_.reply(Reply::whole(200, "text/plain", "second"));
  EXPECT_EQ(fetch(), "200 second");
  EXPECT_EQ(engine_.connections_accepted(), 2u);

  engine_.reply(Reply().end(Reply::End::reset));
  engine_.reply(Reply().end(Reply::End::close));
  EXPECT_TRUE(fetch().starts_with("engine_failed: "));
  EXPECT_EQ(engine_.connections_accepted(), 3u) << "a fresh connection is not tried twice";
}

TEST_F(ClientTest, AFreshConnectionThatDiesIsAnErrorAtOnce) {
  engine_.reply(Reply().end(Reply::End::close));
  EXPECT_EQ(fetch(), "engine_failed: the engine closed the connection without an answer");
  EXPECT_EQ(engine_.connections_accepted(), 1u);
}

TEST_F(ClientTest, NothingIsSentAgainOnceAByteOfAnAnswerCame) {
  engine_.reply(Reply::whole(200, "text/plain", "fine"));
  fetch();
  engine_.reply(Reply().send("H").end(Reply::End::close));
  EXPECT_TRUE(fetch().starts_with("engine_failed: "));
  engine_.reply(Reply::whole(200, "text/plain", "fine"));
  fetch();
  engine_.reply(
      Reply().send("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nab").end(Reply::End::close));
  EXPECT_TRUE(fetch().starts_with("engine_failed: "));
  EXPECT_EQ(engine_.requests().size(), 4u);
}

TEST_F(ClientTest, AStreamIsReadAsItComes) {
  engine_.reply(Reply::stream("text/event-stream")
                    .chunk("one")
                    .wait_for(more_)
                    .chunk("two")
                    .chunk("three")
                    .last_chunk());
  EXPECT_EQ(send(), "200");
  EXPECT_EQ(response_->headers.find("content-TYPE"), "text/event-stream");
  EXPECT_EQ(read(), "piece one");
  more_.set();
  std::string rest;
  for (std::string piece = read(); piece != "piece "; piece = read()) rest += piece.substr(6);
  EXPECT_EQ(rest, "twothree");
  response_.reset();
  EXPECT_EQ(client_.idle_connections(), 1u);
}

TEST_F(ClientTest, WhatCameBeforeAFaultOfTheFramingIsStillRead) {
  // In one piece, as a busy node reads it.
  engine_.reply(Reply()
                    .send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
                          "3\r\none\r\n3\r\ntwo\r\nno chunk at all\r\n")
                    .end(Reply::End::hang));
  EXPECT_EQ(send(), "200");
  EXPECT_EQ(read(), "piece onetwo");
  EXPECT_EQ(read(), "engine_failed");
  EXPECT_EQ(read(), "engine_failed");
  response_.reset();
  EXPECT_EQ(client_.idle_connections(), 0u);
}

TEST_F(ClientTest, ADroppedResponseClosesTheEnginesConnection) {
  engine_.reply(Reply::stream("text/event-stream").chunk("one").wait_for(more_));
  send();
  response_.reset();
  run_until([this] { return engine_.connection_closed().is_set(); });
  EXPECT_EQ(client_.idle_connections(), 0u);
}

TEST_F(ClientTest, AStopClosesTheEnginesConnectionInTheSameTurn) {
  std::stop_source stop;
  engine_.reply(Reply().end(Reply::End::hang));
  start(fetch_into(post("{}"), stop.get_token()));
  run_until([this] { return engine_.request_arrived().is_set(); });
  const int open_before = count_open_descriptors();
  stop.request_stop();
  EXPECT_EQ(count_open_descriptors(), open_before - 1);
  EXPECT_TRUE(outcomes_.empty()) << "nobody is resumed on the stopper's stack";
  run_until([this] { return engine_.connection_closed().is_set() && !outcomes_.empty(); });
  EXPECT_TRUE(outcomes_[0].starts_with("cancelled"));
}

TEST_F(ClientTest, AStopEndsTheReadingOfABody) {
  std::stop_source stop;
  engine_.reply(Reply::stream("text/event-stream").chunk("one").end(Reply::End::hang));
  send();
  read();
  start(read_into(stop.get_token()));
  poll();
  stop.request_stop();
  run_until([this] { return engine_.connection_closed().is_set() && outcomes_.size() == 3; });
  EXPECT_EQ(outcomes_[2], "cancelled");
}

TEST_F(ClientTest, ARequestedStopPreventsTheCall) {
  std::stop_source stop;
  stop.request_stop();
  run(fetch_into(post("{}"), stop.get_token()));
  EXPECT_TRUE(outcomes_[0].starts_with("cancelled"));
  EXPECT_TRUE(engine_.requests().empty());
}

struct BadAnswer {
  const char* name;
  std::string bytes;
};
class BadAnswerTest : public ClientTest, public ::testing::WithParamInterface<BadAnswer> {};

TEST_P(BadAnswerTest, IsAnErrorOfTheEngine) {
  engine_.reply(Reply().send(GetParam().bytes).end(Reply::End::close));
  EXPECT_TRUE(fetch().starts_with("engine_failed: ")) << outcomes_.back();
  EXPECT_EQ(client_.idle_connections(), 0u);
}

INSTANTIATE_TEST_SUITE_P(
    Http, BadAnswerTest,
    ::testing::Values(
        BadAnswer{"Garbage", "ggml_abort: something\n"},
        BadAnswer{"EndlessHead", "HTTP/1.1 200 OK\r\nA: " + std::string(100'000, 'a')},
        BadAnswer{"CutHead", "HTTP/1.1 200 OK\r\nContent-Le"},
        BadAnswer{"CutBody", "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nabc"},
        BadAnswer{"CutChunks", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n"},
        BadAnswer{"CutInAChunk", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n9\r\nabc"},
        BadAnswer{"BadChunk", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\n"},
        BadAnswer{"EndlessExtension", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3;" +
                                          std::string(100'000, 'a')},
        BadAnswer{"TooLong", "HTTP/1.1 200 OK\r\nContent-Length: 2000000\r\n\r\n" +
                                 std::string(2'000'000, 'a')},
        BadAnswer{"OnlyInterim", "HTTP/1.1 100 Continue\r\n\r\n"}),
    [](const auto& test) { return test.param.name; });

TEST_F(ClientTest, InterimAnswersAreSkipped) {
  engine_.reply(Reply()
                    .send("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early\r\nX: y\r\n\r\n")
                    .send("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"));
  EXPECT_EQ(fetch(), "200 ok");
}

TEST_F(ClientTest, ABodyWithoutFramingEndsWithTheConnection) {
  engine_.reply(Reply().send("HTTP/1.0 200 OK\r\n\r\nall of it").end(Reply::End::close));
  EXPECT_EQ(fetch(), "200 all of it");
  EXPECT_EQ(client_.idle_connections(), 0u);
}

TEST_F(ClientTest, AHeadRequestHasNoBodyToWaitFor) {
  engine_.reply(Reply().send("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n"));
  ClientRequest request;
  request.method = "HEAD";
  request.target = "/";
  run(fetch_into(std::move(request), {}));
  EXPECT_EQ(outcomes_[0], "200 ");
  EXPECT_EQ(engine_.requests()[0].head, "HEAD / HTTP/1.1\r\nHost: localhost\r\n\r\n");
}

TEST_F(ClientTest, AnEarlyRefusalOfALongBodyIsHeard) {
  const std::string body(8'000'000, 'b');
  engine_.reply(Reply::whole(200, "text/plain", "fine"));
  fetch();
  start(fetch_into(post(body), {}));
  run_until([this] { return engine_.bytes_received().size() > 5000; });
  engine_.answer_now(Reply::whole(413, "text/plain", "too long"));
  run_until([this] { return outcomes_.size() == 2; });
  EXPECT_EQ(outcomes_[1], "413 too long");
  EXPECT_EQ(client_.idle_connections(), 0u);
}

TEST_F(ClientTest, NobodyListeningIsAnErrorThatSaysSo) {
  Address nowhere;
  nowhere.unix_path = (folder_.path() / "nobody").string();
  address_ = nowhere;
  EXPECT_TRUE(fetch().starts_with("engine_failed: cannot connect to "));
}

TEST_F(ClientTest, LocalhostIsFoundOnWhicheverLoopbackItListens) {
  test::ScriptedServer other(executor());
  Address address;
  address.host = "localhost";
  address.port = other.listen_tcp();
  other.reply(Reply::whole(200, "text/plain", "found"));
  address_ = address;
  EXPECT_EQ(fetch(), "200 found");
  EXPECT_NE(other.requests()[0].head.find("Host: localhost:"), std::string::npos);
  run(other.close());
}

TEST_F(ClientTest, ALineEndInsideAFieldCannotAddAnother) {
  engine_.reply(Reply::whole(200, "text/plain", "fine"));
  ClientRequest request = post("");
  request.headers.add("X-Bad", "a\r\nX-Injected: b");
  request.headers.add("X-Na\r\nme", "c");
  run(fetch_into(std::move(request), {}));
  EXPECT_NE(engine_.requests()[0].head.find("\r\nX-Bad: a  X-Injected: b\r\n"), std::string::npos);
  EXPECT_NE(engine_.requests()[0].head.find("\r\nX-Na--me: c\r\n"), std::string::npos);
}

TEST_F(ClientTest, AResponseMayOutliveItsClient) {
  auto client = std::make_unique<Client>(executor(), clock_, ClientProfile());
  engine_.reply(Reply::whole(200, "text/plain", "fine"));
  send();
  EXPECT_EQ(read(), "piece fine");
  client.reset();
  EXPECT_EQ(read(), "piece ");
}

TEST_F(ClientTest, AConnectionIsRetiredBeforeTheEngineRetiresIt) {
  ClientProfile profile;
  profile.uses_max = 2;
  Client client(executor(), clock_, profile);
  engine_.reply_always(Reply::whole(200, "text/plain", "fine"));
  for (int call = 0; call < 5; ++call) run(fetch_with(client));
  EXPECT_EQ(engine_.connections_accepted(), 3u);
}

TEST_F(ClientTest, WithoutReuseTheEngineIsToldToClose) {
  ClientProfile profile;
  profile.reuse = false;
  Client client(executor(), clock_, profile);
  engine_.reply_always(Reply::whole(200, "text/plain", "fine"));
  run(fetch_with(client));
  run(fetch_with(client));
  EXPECT_EQ(engine_.connections_accepted(), 2u);
  EXPECT_NE(engine_.requests()[0].head.find("Connection: close\r\n"), std::string::npos);
}

TEST_F(ClientTest, AnEngineThatAcceptsNobodyIsATimeout) {
  address_.unix_path = (folder_.path() / "full").string();
  const int listener = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_un place{};
  place.sun_family = AF_UNIX;
  address_.unix_path.copy(place.sun_path, sizeof place.sun_path - 1);
  ASSERT_EQ(::bind(listener, reinterpret_cast<sockaddr*>(&place), sizeof place), 0);
  ASSERT_EQ(::listen(listener, 0), 0);
  const test::RawClient filler(executor(), address_.unix_path);
  start(fetch_into(post("{}"), {}));
  poll();
  EXPECT_TRUE(outcomes_.empty());
  for (int step = 0; step < 700 && outcomes_.empty(); ++step) {
    clock_.advance(5ms);
    poll();
  }
  ASSERT_EQ(outcomes_.size(), 1u);
  EXPECT_TRUE(outcomes_[0].starts_with("engine_timeout")) << outcomes_[0];
  ::close(listener);
}

TEST_F(ClientTest, ASlowReaderHoldsTheEngineBack) {
  const std::string block(64 * 1024, 'x');
  Reply flood = Reply::stream("application/octet-stream");
  for (int blocks = 0; blocks < 160; ++blocks) flood.chunk(block);
  async::Event all_sent(executor());
  engine_.reply(flood.last_chunk().tell(all_sent));
  send();
  read();
  poll();
  EXPECT_FALSE(all_sent.is_set()) << "ten megabytes fit in no socket buffer";
  std::size_t bytes = outcomes_.back().size() - 6;
  for (std::string piece = read(); piece != "piece "; piece = read()) bytes += piece.size() - 6;
  EXPECT_EQ(bytes, 160 * block.size());
  EXPECT_TRUE(all_sent.is_set());
}

}  // namespace
}  // namespace werk::http
