#include <fcntl.h>

#include "tests/support/loop_fixture.hpp"
#include "tests/support/manual_clock.hpp"
#include "tests/support/scripted_server.hpp"
#include "tests/support/temporary_folder.hpp"
#include "tests/support/tls_front.hpp"
#include "werk/http/client.hpp"

namespace werk::http {
namespace {

using test::Reply;
using test::TlsFront;
using namespace std::chrono_literals;

constexpr std::string_view kGoodName = "localhost";

// Files trusted for the time of a test.
class Trusted {
 public:
  explicit Trusted(const std::filesystem::path& file) {
    ::setenv("SSL_CERT_FILE", file.c_str(), 1);
    ::setenv("SSL_CERT_DIR", "/nonexistent", 1);
  }
  ~Trusted() {
    ::unsetenv("SSL_CERT_FILE");
    ::unsetenv("SSL_CERT_DIR");
  }
};

class ClientTlsTest : public test::LoopFixture {
 protected:
  ClientTlsTest()
      : certificate_(folder_.path()),
        trusted_(certificate_.file()),
        more_(executor()),
        engine_(executor()),
        client_(executor(), clock_, ClientProfile()) {
    engine_.listen_unix(socket());
    serve(certificate_, TlsFront::Goodbye::said);
  }
  void TearDown() override {
    response_.reset();
    run(engine_.close());
    front_.reset();
  }

  std::string socket() const { return folder_ / "engine"; }
  void serve(const test::TestCertificate& certificate, TlsFront::Goodbye goodbye) {
    front_ = std::make_unique<TlsFront>(certificate, socket(), goodbye);
    address_ = Address{{}, "127.0.0.1", front_->port(), std::string(kGoodName)};
  }
  std::string client_says(std::string_view reason) const {
    return "engine_failed: cannot connect to 127.0.0.1:" + std::to_string(address_.port) + ": " +
           std::string(reason);
  }

  async::awaitable<void> fetch_into(std::string_view body, std::stop_token stop) {
    ClientRequest request;
    request.method = "POST";
    request.target = "/v1/chat/completions";
    request.body = body;
    auto whole = co_await client_.fetch(address_, std::move(request), 4 << 20, stop);
    outcomes_.push_back(whole ? std::to_string(whole->status) + " " + whole->body
                              : std::string(name_of(whole.error().code)) + ": " +
                                    whole.error().message);
  }
  async::awaitable<void> send_into() {
    ClientRequest request;
    request.method = "GET";
    request.target = "/stream";
    auto sent = co_await client_.send(address_, std::move(request), std::stop_token());
    if (sent) response_ = std::move(*sent);
    outcomes_.push_back(sent ? std::to_string(response_->status) : sent.error().message);
  }
  async::awaitable<void> read_into() {
    auto piece = co_await response_->read_some(std::stop_token());
    outcomes_.push_back(piece ? "piece " + std::string(*piece)
                              : std::string(name_of(piece.error().code)));
  }
  std::string fetch(std::string_view body = "{}") {
    run(fetch_into(body, {}));
    return outcomes_.empty() ? "" : outcomes_.back();
  }
  std::string send() {
    run(send_into());
    return outcomes_.back();
  }
  std::string read() {
    run(read_into());
    return outcomes_.back();
  }

  test::TemporaryFolder folder_;
  test::TestCertificate certificate_;
  Trusted trusted_;
  test::ManualClock clock_;
  async::Event more_;
  test::ScriptedServer engine_;
  std::unique_ptr<TlsFront> front_;
  Client client_;
  Address address_;
  std::unique_ptr<Response> response_;
  std::vector<std::string> outcomes_;
};

TEST_F(ClientTlsTest, ARequestGoesOutUnderTheNameAndItsAnswerComesBack) {
  engine_.reply(Reply::whole(200, "text/plain", "fine"));
  EXPECT_EQ(fetch("{\"a\":1}"), "200 fine");
  EXPECT_EQ(front_->name_asked_for(), kGoodName);
  EXPECT_EQ(front_->protocol_chosen(), "http/1.1");
  EXPECT_NE(engine_.requests()[0].head.find("Host: localhost:"), std::string::npos);
  EXPECT_EQ(engine_.requests()[0].body, "{\"a\":1}");
}

TEST_F(ClientTlsTest, ACertificateMayBeForAnAddress) {
  address_.tls_name = "127.0.0.1";
  engine_.reply(Reply::whole(200, "text/plain", "fine"));
  EXPECT_EQ(fetch(), "200 fine");
  EXPECT_EQ(front_->name_asked_for(), "") << "an address is no name to ask for";
}

TEST_F(ClientTlsTest, AKeptConnectionIsUsedAgain) {
  for (int call = 0; call < 3; ++call) {
    engine_.reply(Reply::whole(200, "text/plain", "fine"));
    EXPECT_EQ(fetch(), "200 fine");
  }
  EXPECT_EQ(front_->accepted(), 1u);
  EXPECT_EQ(client_.idle_connections(), 1u);
}

TEST_F(ClientTlsTest, AKeptConnectionThatThePeerEndedIsNotedAtOnce) {
  engine_.reply_always(Reply::whole(200, "text/plain", "fine"));
  fetch();
  engine_.drop_idle();
  run_until([this] { return client_.idle_connections() == 0; });
  EXPECT_EQ(fetch(), "200 fine");
  EXPECT_EQ(front_->accepted(), 2u);
}

TEST_F(ClientTlsTest, AnotherNameIsNotServedByAKeptConnection) {
  engine_.reply_always(Reply::whole(200, "text/plain", "fine"));
  fetch();
  address_.tls_name = "127.0.0.1";
  EXPECT_EQ(fetch(), "200 fine");
  EXPECT_EQ(front_->accepted(), 2u);
}

TEST_F(ClientTlsTest, AMebibyteGoesEachWay) {
  std::string body(1 << 20, 'q');
  for (std::size_t at = 0; at < body.size(); ++at) body[at] = static_cast<char>('a' + at % 23);
  const std::string answer(1 << 20, 'z');
  engine_.reply(Reply::whole(200, "text/plain", answer));
  EXPECT_TRUE(fetch(body) == "200 " + answer);
  EXPECT_TRUE(engine_.requests()[0].body == body);
  EXPECT_EQ(client_.idle_connections(), 1u);
}

TEST_F(ClientTlsTest, AStreamIsReadAsItComes) {
  engine_.reply(
      Reply::stream("text/event-stream").chunk("one").wait_for(more_).chunk("two").last_chunk());
  EXPECT_EQ(send(), "200");
  EXPECT_EQ(read(), "piece one");
  more_.set();
  EXPECT_EQ(read(), "piece two");
  EXPECT_EQ(read(), "piece ");
}

TEST_F(ClientTlsTest, ABodyThatEndsWithTheConnectionNeedsItsGoodbye) {
  const std::string unframed = "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\nall of it";
  engine_.reply(Reply().send(unframed).end(Reply::End::close));
  EXPECT_EQ(fetch(), "200 all of it");
  serve(certificate_, TlsFront::Goodbye::left_out);
  engine_.reply(Reply().send(unframed).end(Reply::End::close));
  EXPECT_EQ(fetch(), "engine_failed: the engine closed the connection in the middle of its answer");
}

TEST_F(ClientTlsTest, ALineCutInTheMiddleGivesWhatCameAndThenAnError) {
  serve(certificate_, TlsFront::Goodbye::left_out);
  engine_.reply(Reply::stream("text/event-stream").chunk("one").end(Reply::End::close));
  EXPECT_EQ(send(), "200");
  EXPECT_EQ(read(), "piece one");
  EXPECT_EQ(read(), "engine_failed");
}

TEST_F(ClientTlsTest, AStopClosesTheConnectionInTheSameTurn) {
  std::stop_source stop;
  engine_.reply(Reply().end(Reply::End::hang));
  start(fetch_into("{}", stop.get_token()));
  run_until([this] { return engine_.request_arrived().is_set(); });
  stop.request_stop();
  EXPECT_TRUE(outcomes_.empty()) << "nobody is resumed on the stopper's stack";
  front_->wait_until_nobody_is_left();  // without another turn of the loop
  run_until([this] { return engine_.connection_closed().is_set() && !outcomes_.empty(); });
  EXPECT_TRUE(outcomes_[0].starts_with("cancelled"));
}

TEST_F(ClientTlsTest, ACertificateForAnotherNameIsRefused) {
  address_.tls_name = "werk.example";
  EXPECT_EQ(fetch(), client_says("its certificate isn't for 'werk.example'; use a name that the "
                                 "certificate is for, or give the server one for this name"));
  EXPECT_TRUE(engine_.requests().empty());
}

TEST_F(ClientTlsTest, AnUnknownAuthorityIsRefused) {
  const test::TemporaryFolder elsewhere;
  const test::TestCertificate stranger(elsewhere.path());
  serve(stranger, TlsFront::Goodbye::said);
  const std::string said = fetch();
  EXPECT_TRUE(
      said.starts_with(client_says("its certificate is signed by an authority that this "
                                   "machine doesn't know (self-signed certificate)")))
      << said;
  EXPECT_TRUE(said.ends_with("or name its file in SSL_CERT_FILE"));
  EXPECT_TRUE(engine_.requests().empty());
}

TEST_F(ClientTlsTest, AnExpiredCertificateIsRefused) {
  const test::TemporaryFolder elsewhere;
  const test::TestCertificate old(elsewhere.path(),
                                  {.names = "DNS:localhost", .valid_until_s = -60});
  const Trusted trusted(old.file());
  serve(old, TlsFront::Goodbye::said);
  EXPECT_EQ(fetch(), client_says("its certificate has expired; renew it there, or set this "
                                 "machine's clock right"));
}

TEST_F(ClientTlsTest, AServerWithoutTlsIsTold) {
  test::ScriptedServer plain(executor());
  address_.port = plain.listen_tcp();
  start(fetch_into("{}", {}));
  run_until([&plain] { return plain.bytes_received().size() > 100; });
  plain.answer_now(Reply::whole(400, "text/plain", "what?"));
  run_until([this] { return !outcomes_.empty(); });
  EXPECT_EQ(outcomes_[0],
            client_says("it doesn't speak TLS there; is it http:// or another port?"));
  run(plain.close());
}

TEST_F(ClientTlsTest, AServerThatNeverShakesHandsIsATimeout) {
  test::ScriptedServer silent(executor());
  address_.port = silent.listen_tcp();
  start(fetch_into("{}", {}));
  run_until([&silent] { return silent.bytes_received().size() > 100; });
  EXPECT_TRUE(outcomes_.empty());
  clock_.advance(3s);
  run_until([this] { return !outcomes_.empty(); });
  EXPECT_TRUE(outcomes_[0].starts_with("engine_timeout: connecting to 127.0.0.1:"));
  run(silent.close());
}

}  // namespace
}  // namespace werk::http
