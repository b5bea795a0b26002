#include "werk/http/server.hpp"

#include "tests/support/http_fixture.hpp"
#include "tests/support/temporary_folder.hpp"

namespace werk::http {
namespace {

using test::HttpFixture;

class ServerTest : public HttpFixture {};

constexpr std::string_view kClose = "Connection: close\r\n\r\n";

std::string get(std::string_view target, std::string_view more = {}) {
  return fmt::format("GET {} HTTP/1.1\r\nHost: x\r\n{}\r\n", target, more);
}

TEST_F(ServerTest, ARequestIsAnsweredWithItsLengthAndTheConnectionIsKept) {
  const auto client = connect();
  client->send(get("/hello?a=b"));
  wait_for(*client, "hello");
  EXPECT_TRUE(client->received().starts_with("HTTP/1.1 200 OK\r\n"));
  EXPECT_TRUE(client->has("Content-Length: 5\r\n"));
  EXPECT_TRUE(client->has("Date: "));
  EXPECT_EQ(handler_.last.path, "/hello");
  EXPECT_EQ(handler_.last.query, "a=b");
  EXPECT_TRUE(handler_.last.peer_is_loopback);
  EXPECT_TRUE(handler_.last.peer.starts_with("127.0.0.1:"));
  client->take();
  client->send(get("/again"));
  wait_for(*client, "hello");
  EXPECT_EQ(handler_.seen.size(), 2u);
  EXPECT_EQ(server_->connections(), 1u);
}

TEST_F(ServerTest, PipelinedRequestsAreAnsweredInOrderWithoutLosingAByte) {
  const auto client = connect();
  client->send("POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n\r\none" + get("/stream") +
               "POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\nthr");
  wait_for(*client, "3\r\none\r\n");
  client->send("ee");
  poll();
  EXPECT_EQ(handler_.seen.size(), 2u) << "the third waits for the second";
  handler_.gate.set();
  wait_for(*client, "\r\n\r\nthree");
  const std::string& all = client->received();
  EXPECT_LT(all.find("\r\n\r\none"), all.find("3\r\ntwo\r\n0\r\n\r\n"));
  EXPECT_LT(all.find("3\r\ntwo\r\n0\r\n\r\n"), all.find("\r\n\r\nthree"));
}

TEST_F(ServerTest, AHeadAndABodyMayComeOneByteAtATime) {
  const auto client = connect();
  const std::string request =
      "POST /echo HTTP/1.1\r\nhOsT: x\r\ntransfer-ENCODING: chunked\r\n\r\n"
      "1;name=value\r\na\r\n0A;x=\"y\"\r\nbcdefghijk\r\n0\r\nTrailer: ignored\r\n\r\n";
  for (const char letter : request) {
    client->send(std::string_view(&letter, 1));
    poll();
  }
  wait_for(*client, "\r\n\r\nabcdefghijk");
  client->take();
  // The connection is still in step.
  client->send("POST /echo HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n");
  for (const std::string_view piece : {"0", "\r", "\n", "\r", "\n"}) {
    client->send(piece);
    poll();
  }
  wait_for(*client, "Content-Length: 0\r\n");
}

TEST_F(ServerTest, ManyChunksInOnePacketAreOnePiece) {
  const auto client = connect();
  std::string body;
  std::string request = "POST /echo HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n";
  for (int chunk = 0; chunk < 300; ++chunk) {
    const std::string text = std::to_string(chunk) + ",";
    body += text;
    request += fmt::format("{:x}\r\n{}\r\n", text.size(), text);
  }
  client->send(request + "0\r\n\r\n");
  wait_for(*client, body);
}

TEST_F(ServerTest, ALargeBodyArrivesWhole) {
  const auto client = connect();
  const std::string body(700'000, 'b');
  client->send(
      fmt::format("POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: {}\r\n\r\n", body.size()));
  std::size_t sent = 0;
  while (sent < body.size()) {
    sent += client->send(std::string_view(body).substr(sent));
    poll();
  }
  run_until([&client, &body] { return client->received().size() > body.size(); });
  EXPECT_EQ(body_of(client->received()), body);
}

TEST_F(ServerTest, HeadGetsTheHeadOfGetAndNoBody) {
  const auto client = connect();
  client->send("HEAD /hello HTTP/1.1\r\nHost: x\r\n\r\n" + get("/next", "Connection: close\r\n"));
  wait_for_end(*client);
  EXPECT_EQ(count(client->received(), "Content-Length: 5\r\n"), 2u);
  EXPECT_EQ(count(client->received(), "hello"), 1u);
}

TEST_F(ServerTest, AStreamedAnswerToHeadHasNoChunks) {
  handler_.gate.set();
  const auto client = connect();
  client->send("HEAD /stream HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
  wait_for_end(*client);
  EXPECT_TRUE(client->has("Transfer-Encoding: chunked\r\n"));
  EXPECT_EQ(body_of(client->received()), "");
}

TEST_F(ServerTest, AnOldClientGetsAnUnchunkedStreamThatTheCloseEnds) {
  handler_.gate.set();
  const std::string answer = exchange("GET /stream HTTP/1.0\r\n\r\n");
  EXPECT_EQ(count(answer, "Transfer-Encoding"), 0u);
  EXPECT_EQ(body_of(answer), "onetwo");
}

TEST_F(ServerTest, TheLastWordsOfAStreamLeaveTogetherWithItsEnd) {
  const auto client = connect();
  client->send(get("/last"));
  wait_for(*client, "3\r\none\r\n3\r\ntwo\r\n0\r\n\r\n");
  client->send("HEAD /last HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
  wait_for_end(*client);
  EXPECT_EQ(count(client->received(), "two"), 1u);
  EXPECT_EQ(body_of(exchange("GET /last HTTP/1.0\r\n\r\n")), "onetwo");
}

TEST_F(ServerTest, AnOldClientKeepsTheConnectionOnlyIfItAsks) {
  const std::string answer = exchange("GET / HTTP/1.0\r\n\r\n");
  EXPECT_EQ(body_of(answer), "hello");
  const auto client = connect();
  client->send("GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n");
  wait_for(*client, "hello");
  EXPECT_TRUE(client->has("Connection: keep-alive\r\n"));
  client->send("GET / HTTP/1.0\r\n\r\n");
  wait_for_end(*client);
  EXPECT_EQ(count(client->received(), "hello"), 2u);
}

TEST_F(ServerTest, ContinueIsSentOnlyOnceTheBodyIsWanted) {
  const auto client = connect();
  client->send(
      "POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\nExpect: 100-Continue\r\n\r\n");
  wait_for(*client, "HTTP/1.1 100 Continue\r\n\r\n");
  EXPECT_EQ(count(client->received(), "200"), 0u);
  client->send("ok");
  wait_for(*client, "\r\n\r\nok");
}

TEST_F(ServerTest, ABodyDeclaredTooLongIsRefusedWithoutContinue) {
  handler_.body_bytes_max = 10;
  const auto client = connect();
  client->send(
      "POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 11\r\nExpect: 100-continue\r\n\r\n");
  wait_for_end(*client);
  EXPECT_TRUE(client->received().starts_with("HTTP/1.1 413 "));
  EXPECT_EQ(count(client->received(), "100 Continue"), 0u);
  EXPECT_TRUE(client->has("Connection: close\r\n"));
}

TEST_F(ServerTest, AChunkedBodyIsRefusedOnceItIsTooLong) {
  handler_.body_bytes_max = 10;
  const std::string answer = exchange(
      "POST /echo HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nb\r\n01234567890\r\n");
  EXPECT_TRUE(answer.starts_with("HTTP/1.1 413 "));
}

TEST_F(ServerTest, AnUnreadBodyThatArrivedDoesNotCostTheConnection) {
  const auto client = connect();
  client->send("POST /hello HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\n\r\nbody" + get("/next"));
  wait_for_requests(2);
  run_until([&client] { return count(client->received(), "hello") == 2; });
  EXPECT_EQ(handler_.seen[1], "GET /next");
}

TEST_F(ServerTest, AnUnreadBodyThatIsStillComingClosesAfterTheAnswer) {
  const auto client = connect();
  client->send("POST /hello HTTP/1.1\r\nHost: x\r\nContent-Length: 4000000\r\n\r\nbody");
  wait_for(*client, "hello");
  EXPECT_TRUE(client->has("Connection: close\r\n"));
  client->send("more that nobody wants");
  wait_for_end(*client);
  EXPECT_FALSE(client->was_reset()) << "a reset could overtake the answer";
}

struct BadRequest {
  const char* name;
  std::string bytes;
  int status;
};
class BadRequestTest : public HttpFixture, public ::testing::WithParamInterface<BadRequest> {};

TEST_P(BadRequestTest, IsRefusedWithASmallJsonBodyAndAClose) {
  const std::string answer = exchange(GetParam().bytes);
  EXPECT_TRUE(answer.starts_with(fmt::format("HTTP/1.1 {} ", GetParam().status))) << answer;
  EXPECT_EQ(count(answer, "Connection: close\r\n"), 1u);
  EXPECT_TRUE(body_of(answer).starts_with(R"({"error":{"message":")"));
  // Nobody but the sender is hurt.
  EXPECT_EQ(body_of(exchange(get("/", "Connection: close\r\n"))), "hello");
}

INSTANTIATE_TEST_SUITE_P(
    Http, BadRequestTest,
    ::testing::Values(
        BadRequest{"Garbage", "\x16\x03\x01\x02 tls or so\r\n\r\n", 400},
        BadRequest{"GarbageLine", "hello\n\n", 400},
        BadRequest{
            "LengthAndChunking",
            "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n",
            400},
        BadRequest{
            "ChunkingAndLength",
            "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\nContent-Length: 3\r\n\r\n",
            400},
        BadRequest{"TwoLengths",
                   "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\nContent-Length: 3\r\n\r\n",
                   400},
        BadRequest{"ListOfLengths", "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 3, 3\r\n\r\n",
                   400},
        BadRequest{"NegativeLength", "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: -3\r\n\r\n",
                   400},
        BadRequest{"HugeLength",
                   "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 99999999999999999999\r\n\r\n",
                   400},
        BadRequest{"OtherCoding",
                   "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: gzip, chunked\r\n\r\n", 400},
        BadRequest{"FoldedLine", "GET / HTTP/1.1\r\nHost: x\r\nA: b\r\n c\r\n\r\n", 400},
        BadRequest{"BlankBeforeColon", "GET / HTTP/1.1\r\nHost : x\r\n\r\n", 400},
        BadRequest{"NoHost", "GET / HTTP/1.1\r\n\r\n", 400},
        BadRequest{"TwoHosts", "GET / HTTP/1.1\r\nHost: x\r\nHost: y\r\n\r\n", 400},
        BadRequest{"Version", "GET / HTTP/3.0\r\nHost: x\r\n\r\n", 400},
        BadRequest{"NoTarget", "GET  HTTP/1.1\r\nHost: x\r\n\r\n", 400},
        BadRequest{"LargeHead",
                   "GET / HTTP/1.1\r\nHost: x\r\nA: " + std::string(70'000, 'a') + "\r\n\r\n", 431},
        BadRequest{"ManyFields",
                   [] {
                     std::string head = "GET / HTTP/1.1\r\nHost: x\r\n";
                     for (int field = 0; field < 9000; ++field)
                       head += fmt::format("X{}: y\r\n", field);
                     return head;
                   }(),
                   431}),
    [](const auto& test) { return test.param.name; });

TEST_F(ServerTest, MalformedChunksAreInvalid) {
  for (const std::string_view chunks :
       {"zz\r\nabc\r\n", "3\r\nabcd\r\n0\r\n\r\n", "fffffffffffffffff\r\n", "-1\r\n\r\n"}) {
    handler_.notes.clear();
    const std::string answer = exchange(fmt::format(
        "POST /echo HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n{}", chunks));
    EXPECT_TRUE(answer.starts_with("HTTP/1.1 400 ")) << chunks;
    ASSERT_EQ(handler_.notes.size(), 1u) << chunks;
    EXPECT_TRUE(handler_.notes[0].starts_with("invalid_request")) << handler_.notes[0];
  }
}

TEST_F(ServerTest, OddTargetsReachTheHandlerWithAPath) {
  const auto client = connect();
  client->send("OPTIONS * HTTP/1.1\r\nHost: x\r\n\r\n" + get("http://example.org") +
               get("http://example.org:8/v1/models?x=1") + get("/a//b%20c/?") +
               "FROB / HTTP/1.1\r\nHost: x\r\n" + std::string(kClose));
  wait_for_end(*client);
  ASSERT_EQ(handler_.seen.size(), 5u);
  EXPECT_EQ(handler_.seen[0], "OPTIONS *");
  EXPECT_EQ(handler_.seen[4], "FROB /");
  const std::string answer =
      exchange(get("http://example.org:8/v1/models?x=1", "Connection: close\r\n"));
  EXPECT_EQ(handler_.last.path, "/v1/models");
  EXPECT_EQ(handler_.last.query, "x=1");
}

TEST_F(ServerTest, AnEmptyLineBeforeARequestIsForgiven) {
  EXPECT_EQ(body_of(exchange("\r\n\r\n" + get("/", "Connection: close\r\n"))), "hello");
}

TEST_F(ServerTest, AThrowingHandlerIsAnsweredFor) {
  EXPECT_TRUE(exchange(get("/throw")).starts_with("HTTP/1.1 500 "));
  const std::string late = exchange(get("/throw?late"));
  EXPECT_EQ(body_of(late), "4\r\npart\r\n") << "no last chunk after a failure";
  EXPECT_TRUE(exchange(get("/silent")).starts_with("HTTP/1.1 500 "));
}

TEST_F(ServerTest, ABrokenOffStreamClosesWithoutTheLastChunk) {
  EXPECT_EQ(body_of(exchange(get("/broken"))), "4\r\npart\r\n");
}

TEST_F(ServerTest, ATakenPortIsAConflictThatNamesItsHolder) {
  const auto second = server_->listen("127.0.0.1", port_);
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().code, ErrorCode::conflict);
  EXPECT_NE(second.error().message.find(fmt::format("process {} ", ::getpid())), std::string::npos);
  EXPECT_NE(second.error().message.find("--port"), std::string::npos);
  EXPECT_EQ(server_->listen("nowhere.example", 0).error().code, ErrorCode::invalid_request);
}

TEST_F(ServerTest, AUnixSocketServesToo) {
  const test::TemporaryFolder folder;
  const std::string path = (folder.path() / "s").string();
  ASSERT_TRUE(server_->listen_unix(path));
  test::RawClient client(executor(), path);
  client.send(get("/"));
  wait_for(client, "hello");
  EXPECT_EQ(handler_.last.peer, "unix");
  stop();
  EXPECT_NE(::access(path.c_str(), F_OK), 0);
}

TEST_F(ServerTest, WhileDrainingAnswersCloseAndIdleConnectionsEnd) {
  const auto idle = connect();
  idle->send(get("/"));
  wait_for(*idle, "hello");
  const auto busy = connect();
  busy->send(get("/wait"));
  wait_for_requests(2);
  server_->stop_keep_alive();
  wait_for_end(*idle);
  EXPECT_FALSE(busy->ended());
  handler_.gate.set();
  wait_for_end(*busy);
  EXPECT_TRUE(busy->has("Connection: close\r\n"));
  EXPECT_TRUE(busy->has("done"));
  EXPECT_EQ(body_of(exchange(get("/"))), "hello") << "still accepts, but keeps nothing";
}

TEST_F(ServerTest, CloseEndsEveryConnectionAndJoinsTheHandlers) {
  const auto idle = connect();
  const auto partial = connect();
  partial->send("GET / HT");
  const auto waiting = connect();
  waiting->send(get("/wait"));
  const auto stalled = connect();
  stalled->pause_reading();
  stalled->send(get("/flood"));
  wait_for_requests(2);
  poll();
  stop();
  EXPECT_EQ(handler_.leavers, 2u);
  EXPECT_EQ(clock_.pending(), 0u);
  wait_for_end(*idle);
  wait_for_end(*partial);
  wait_for_end(*waiting);
}

}  // namespace
}  // namespace werk::http
