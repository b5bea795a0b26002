// How a remote's runtime comes to be given up: by what calls tell it and by its own slow probe.
#include "werk/engine/remote/remote_fixture.hpp"

namespace werk::engine::remote {
namespace {

using namespace std::chrono_literals;
using test::Reply;

const Error kRefused{ErrorCode::engine_failed, "cannot connect to 127.0.0.1:1: refused",
                     Origin::engine};

class RemoteHealthTest : public RemoteFixture {
 protected:
  void SetUp() override {
    make(settings());
    server_.reply(models_page(kList));
    ASSERT_EQ(RemoteFixture::start("a"), "ready");
    poll();
  }
  bool is_given_up() { return runtime_->exited().is_set(); }
  // Long enough for a probe, whenever it is due.
  void probe(std::size_t requests) {
    clock_.advance(36s);
    run_until([this, requests] { return server_.requests().size() >= requests || is_given_up(); });
    const std::size_t open = server_.requests().size();
    EXPECT_EQ(open, requests);
  }

  static constexpr const char* kList = R"({"id":"a"})";
};

TEST_F(RemoteHealthTest, ThreeFailedCallsInARowGiveThePeerUpWithTheLastCause) {
  runtime_->call_failed(kRefused);
  runtime_->call_failed(kRefused);
  EXPECT_FALSE(is_given_up());
  runtime_->call_failed(kRefused);
  EXPECT_TRUE(is_given_up());
  EXPECT_EQ(runtime_->exit_reason(),
            "remote lab failed 3 times in a row, the last time so: cannot connect to "
            "127.0.0.1:1: refused");
}

TEST_F(RemoteHealthTest, AnAnswerInBetweenBeginsTheCountAnew) {
  runtime_->call_failed(kRefused);
  runtime_->call_failed(kRefused);
  runtime_->call_answered();
  runtime_->call_failed(kRefused);
  runtime_->call_failed(kRefused);
  EXPECT_FALSE(is_given_up());
}

TEST_F(RemoteHealthTest, AProbeFindsThatTheModelIsGone) {
  server_.reply(models_page(R"({"id":"b"})"));
  clock_.advance(36s);
  run_until([this] { return is_given_up(); });
  EXPECT_EQ(runtime_->exit_reason(), "remote lab no longer lists a");
}

TEST_F(RemoteHealthTest, OneFailedProbeIsNoDeathAndThreeAre) {
  for (std::size_t i = 0; i < 3; ++i) server_.reply(Reply::whole(502, "text/plain", "away"));
  probe(2);
  poll();
  EXPECT_FALSE(is_given_up());
  for (std::size_t due = 3; !is_given_up() && due < 10; ++due) {
    run_until([this] { return clock_.pending() > 0 || is_given_up(); });
    clock_.advance(2s);
    run_until([this, due] { return server_.requests().size() >= due || is_given_up(); });
    poll();
  }
  run_until([this] { return is_given_up(); });
  EXPECT_NE(runtime_->exit_reason().find("status 502"), std::string::npos)
      << runtime_->exit_reason();
  EXPECT_EQ(server_.requests().size(), 4u);
}

TEST_F(RemoteHealthTest, AProbeIsOneRequestAndOnlyAsLongAsTheRuntimeIsThere) {
  server_.reply_always(models_page(kList));
  probe(2);
  poll();
  EXPECT_FALSE(is_given_up());
  EXPECT_EQ(server_.requests().back().line, "GET /v1/models HTTP/1.1");
  run(runtime_->stop({}));
  poll();
  clock_.advance(120s);
  poll();
  EXPECT_EQ(server_.requests().size(), 2u);
}

// How the pool of connections serves a peer that others close idle connections of.
class RemotePoolTest : public RemoteFixture {
 protected:
  void SetUp() override {
    make(settings());
    server_.reply_always(models_page(R"({"id":"a"})"));
  }
};

TEST_F(RemotePoolTest, FiveHundredCallsInARowTakeAConnectionForEveryNinety) {
  for (int i = 0; i < 500; ++i) ASSERT_EQ(look(), "looked") << i;
  EXPECT_EQ(server_.requests().size(), 500u);
  EXPECT_EQ(server_.connections_accepted(), 6u);
}

TEST_F(RemotePoolTest, AServerOnOneFamilyOnlyIsReachedByANameThatHasBoth) {
  run(engine_->shut_down());
  RemoteSettings by_name = settings();
  by_name.url.host = "localhost";
  make(std::move(by_name));
  for (int i = 0; i < 500; ++i) ASSERT_EQ(look(), "looked") << i << ": " << outcome_;
  EXPECT_EQ(server_.connections_accepted(), 6u) << "no connection was tried in vain and kept";
}

TEST_F(RemotePoolTest, AConnectionIsNotUsedAgainAfterThePeersUsualIdleTime) {
  ASSERT_EQ(look(), "looked");
  clock_.advance(4s);
  ASSERT_EQ(look(), "looked");
  EXPECT_EQ(server_.connections_accepted(), 2u);
}

TEST_F(RemotePoolTest, ACallOnAConnectionThatThePeerHasJustClosedIsSentOnceMore) {
  ASSERT_EQ(look(), "looked");
  server_.drop_idle();  // and nobody has looked since
  ASSERT_EQ(look(), "looked");
  EXPECT_EQ(server_.connections_accepted(), 2u);
  EXPECT_EQ(server_.requests().size(), 2u);
}

TEST_F(RemotePoolTest, ACallThatWasPartlyAnsweredIsNotSentOnceMore) {
  ASSERT_EQ(look(), "looked");
  Reply broken;
  broken.send("HTTP/1.1 200 OK\r\nContent-").end(Reply::End::close);
  server_.reply(std::move(broken));
  EXPECT_NE(look(), "looked");
  EXPECT_EQ(server_.requests().size(), 2u);
}

TEST_F(RemotePoolTest, AFreshConnectionThatThePeerDropsUnansweredIsAnErrorAtOnce) {
  server_.refuse_next(1);
  EXPECT_NE(look(), "looked");
  EXPECT_EQ(server_.connections_accepted(), 1u);
  EXPECT_EQ(server_.requests().size(), 0u);
}

}  // namespace
}  // namespace werk::engine::remote
