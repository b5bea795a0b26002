// What a server does about clients that are slow, many, gone, or half gone.
#include <sys/resource.h>
#include <unistd.h>

#include <fstream>

#include "tests/support/http_fixture.hpp"
#include "tests/support/temporary_folder.hpp"
#include "werk/http/server.hpp"

namespace werk::http {
namespace {

using namespace std::chrono_literals;

class ServerLimitsTest : public test::HttpFixture {
 protected:
  // Lets time pass as a running server would see it: in ticks.
  void pass(std::chrono::seconds time) {
    for (auto tick = 0s; tick < time; tick += 1s) {
      clock_.advance(1s);
      poll();
    }
  }
  std::unique_ptr<test::RawClient> wait_in_handler() {
    auto client = connect();
    const std::size_t before = handler_.seen.size();
    client->send("GET /wait HTTP/1.1\r\nHost: x\r\n\r\n");
    wait_for_requests(before + 1);
    poll();
    return client;
  }
  void wait_for_leaver() {
    run_until([this] { return handler_.leavers > 0; });
  }
};

std::size_t resident_bytes() {
  std::size_t pages = 0;
  std::ifstream statm("/proc/self/statm");
  statm >> pages >> pages;
  return pages * static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
}

TEST_F(ServerLimitsTest, AHeadThatDoesNotComeToItsEndIsATimeout) {
  const auto client = connect();
  client->send("GET / HTTP/1.1\r\nHo");
  poll();
  for (int second = 0; second < 9; ++second) {
    client->send("s");
    pass(1s);
  }
  EXPECT_FALSE(client->ended());
  pass(2s);
  wait_for_end(*client);
  EXPECT_TRUE(client->received().starts_with("HTTP/1.1 408 ")) << client->received();
}

TEST_F(ServerLimitsTest, AnIdleConnectionIsClosedWithoutAWord) {
  const auto fresh = connect();
  const auto used = connect();
  used->send("GET / HTTP/1.1\r\nHost: x\r\n\r\n");
  wait_for(*used, "hello");
  used->take();
  pass(74s);
  EXPECT_FALSE(fresh->ended());
  EXPECT_FALSE(used->ended());
  pass(2s);
  wait_for_end(*fresh);
  wait_for_end(*used);
  EXPECT_EQ(fresh->received() + used->received(), "");
  run_until([this] { return server_->connections() == 0; });
}

TEST_F(ServerLimitsTest, ABodyThatStallsEnds) {
  const auto client = connect();
  client->send("POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\nsome");
  wait_for_requests(1);
  pass(29s);
  client->send("more");
  poll();
  pass(29s);
  EXPECT_TRUE(handler_.notes.empty()) << "every byte counts as progress";
  pass(2s);
  ASSERT_EQ(handler_.notes.size(), 1u);
  EXPECT_TRUE(handler_.notes[0].starts_with("invalid_request")) << handler_.notes[0];
  wait_for_end(*client);
}

TEST_F(ServerLimitsTest, AWorkingHandlerHasNoLimit) {
  const auto client = wait_in_handler();
  pass(1000s);
  EXPECT_FALSE(client->ended());
  handler_.gate.set();
  wait_for(*client, "done");
}

TEST_F(ServerLimitsTest, AClientThatLeavesBeforeTheFirstByteIsNoticed) {
  auto client = wait_in_handler();
  client->close();
  wait_for_leaver();
  EXPECT_EQ(handler_.notes, std::vector<std::string>{"left"});
  run_until([this] { return server_->connections() == 0; });
}

TEST_F(ServerLimitsTest, AClientThatBreaksTheConnectionIsNoticed) {
  auto client = wait_in_handler();
  client->reset();
  wait_for_leaver();
}

TEST_F(ServerLimitsTest, AClientThatLeavesBehindPipelinedBytesIsNoticed) {
  auto client = wait_in_handler();
  client->send("GET /wait HTTP/1.1\r\nHost: x\r\n\r\n");
  poll();
  client->close();
  wait_for_leaver();
  EXPECT_EQ(handler_.seen.size(), 1u);
}

TEST_F(ServerLimitsTest, AHalfCloseIsNotADisconnect) {
  const auto client = wait_in_handler();
  client->shutdown_send();
  poll();
  pass(5s);
  EXPECT_EQ(handler_.leavers, 0u);
  handler_.gate.set();
  wait_for_end(*client);
  EXPECT_TRUE(client->has("done"));
}

TEST_F(ServerLimitsTest, AHalfClosedClientThatThenLeavesIsNoticed) {
  auto client = wait_in_handler();
  client->shutdown_send();
  run_until([this] { return clock_.pending() > 0; });
  poll();
  pass(1s);
  EXPECT_EQ(handler_.leavers, 0u);
  client->close();
  poll();
  clock_.advance(250ms);
  wait_for_leaver();
}

TEST_F(ServerLimitsTest, OnAUnixSocketToo) {
  const test::TemporaryFolder folder;
  const std::string path = (folder.path() / "s").string();
  ASSERT_TRUE(server_->listen_unix(path));
  test::RawClient half(executor(), path);
  test::RawClient gone(executor(), path);
  half.send("GET /wait HTTP/1.1\r\nHost: x\r\n\r\n");
  gone.send("GET /wait HTTP/1.1\r\nHost: x\r\n\r\n");
  wait_for_requests(2);
  half.shutdown_send();
  gone.close();
  wait_for_leaver();
  poll();
  EXPECT_EQ(handler_.leavers, 1u);
  handler_.gate.set();
  wait_for(half, "done");
}

TEST_F(ServerLimitsTest, AClientThatLeavesInMidStreamFailsTheNextWrite) {
  auto client = connect();
  client->send("GET /stream HTTP/1.1\r\nHost: x\r\n\r\n");
  wait_for(*client, "one");
  client->close();
  run_until([this] { return !handler_.notes.empty(); });
  EXPECT_EQ(handler_.notes, std::vector<std::string>{"cancelled"});
}

TEST_F(ServerLimitsTest, AClientThatLeavesInMidBodyIsCancelled) {
  auto client = connect();
  client->send("POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\nsome");
  wait_for_requests(1);
  client->close();
  run_until([this] { return !handler_.notes.empty(); });
  EXPECT_TRUE(handler_.notes[0].starts_with("cancelled"));
}

TEST_F(ServerLimitsTest, StalledReadersCostNoMemoryAndDisturbNobody) {
  std::vector<std::unique_ptr<test::RawClient>> stalled;
  const std::size_t before = resident_bytes();
  for (int reader = 0; reader < 100; ++reader) {
    stalled.push_back(connect());
    stalled.back()->pause_reading();
    stalled.back()->send("GET /flood HTTP/1.1\r\nHost: x\r\n\r\n");
  }
  wait_for_requests(100);
  const auto live = connect();
  for (int call = 0; call < 10; ++call) {
    live->send("GET / HTTP/1.1\r\nHost: x\r\n\r\n");
    wait_for(*live, "hello");
    live->take();
  }
  poll();
  const std::uint64_t flooded = handler_.flooded;
  poll();
  EXPECT_EQ(handler_.flooded, flooded) << "no more is produced than the kernel takes";
  // The test's own clients and handlers are in this, 64 KiB of each.
  EXPECT_LT(resident_bytes() - before, 100u * 512 * 1024);
  stalled.clear();
  run_until([this] { return handler_.leavers == 100; });
}

TEST_F(ServerLimitsTest, AReaderThatTakesNothingForLongHasLeft) {
  const auto client = connect();
  client->pause_reading();
  client->send("GET /flood HTTP/1.1\r\nHost: x\r\n\r\n");
  wait_for_requests(1);
  poll();
  pass(299s);
  EXPECT_EQ(handler_.leavers, 0u);
  pass(5s);
  wait_for_leaver();
}

TEST_F(ServerLimitsTest, PipelinedBytesAreReadOnlyToABound) {
  const auto client = wait_in_handler();
  const std::string junk(64 * 1024, 'j');
  std::size_t sent = 0;
  for (int rounds = 0; rounds < 2000; ++rounds) {
    sent += client->send(junk);
    poll();
  }
  EXPECT_LT(sent, 1000 * junk.size()) << "the client is held back";
  handler_.gate.set();
  wait_for(*client, "done");
  wait_for(*client, "HTTP/1.1 431 ");
}

TEST_F(ServerLimitsTest, OneConnectionTooManyIsToldSo) {
  stop();
  ServerLimits limits;
  limits.connections_max = 2;
  serve(limits);
  auto first = connect();
  const auto second = connect();
  run_until([this] { return server_->connections() == 2; });
  const std::string answer = exchange("GET / HTTP/1.1\r\nHost: x\r\n\r\n");
  EXPECT_TRUE(answer.starts_with("HTTP/1.1 503 ")) << answer;
  EXPECT_EQ(count(answer, "Connection: close\r\n"), 1u);
  EXPECT_EQ(count(answer, "Retry-After: 1\r\n"), 1u);
  EXPECT_TRUE(handler_.seen.empty());
  first->close();
  run_until([this] { return server_->connections() == 1; });
  const auto third = connect();
  third->send("GET / HTTP/1.1\r\nHost: x\r\n\r\n");
  wait_for(*third, "hello");
}

TEST_F(ServerLimitsTest, ManyConnectionsAreServedAtOnce) {
  std::vector<std::unique_ptr<test::RawClient>> clients;
  for (int client = 0; client < 300; ++client) {
    clients.push_back(wait_in_handler());
  }
  EXPECT_EQ(server_->connections(), 300u);
  handler_.gate.set();
  for (const auto& client : clients) wait_for(*client, "done");
}

TEST_F(ServerLimitsTest, RunningOutOfDescriptorsPausesAcceptingInsteadOfSpinning) {
#ifdef __SANITIZE_ADDRESS__
  GTEST_SKIP() << "the sanitizer itself opens descriptors to look at objects";
#endif
  const auto client = connect();
  client->send("GET / HTTP/1.1\r\nHost: x\r\n\r\n");
  rlimit before{};
  ::getrlimit(RLIMIT_NOFILE, &before);
  rlimit none = before;
  none.rlim_cur = 0;
  ::setrlimit(RLIMIT_NOFILE, &none);
  poll();  // would not return if it spun
  ::setrlimit(RLIMIT_NOFILE, &before);
  EXPECT_EQ(server_->connections(), 0u);
  clock_.advance(100ms);
  wait_for(*client, "hello");
}

TEST_F(ServerLimitsTest, TheServersOwnRefusalsAreRenderedAsAsked) {
  server_->set_error_body([](int status, std::string_view message) {
    return std::to_string(status) + " " + std::string(message);
  });
  const std::string answer = exchange("nonsense\r\n\r\n");
  EXPECT_TRUE(body_of(answer).starts_with("400 the "));
}

}  // namespace
}  // namespace werk::http
