#include "werk/http/connector.hpp"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <vector>

#include "tests/support/loop_fixture.hpp"
#include "tests/support/manual_clock.hpp"

namespace werk::http {
namespace {

using namespace std::chrono_literals;

// A listener on one loopback; a full one takes no further connection, as a host does that drops
// packets.
class Listener {
 public:
  explicit Listener(int family, std::uint16_t port = 0, int backlog = SOMAXCONN)
      : family_(family), descriptor_(::socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    const int yes = 1;
    ::setsockopt(descriptor_, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
    if (family == AF_INET6) ::setsockopt(descriptor_, IPPROTO_IPV6, IPV6_V6ONLY, &yes, sizeof yes);
    const sockaddr_storage place = at(port);
    works_ = ::bind(descriptor_, reinterpret_cast<const sockaddr*>(&place), sizeof place) == 0 &&
             ::listen(descriptor_, backlog) == 0;
  }
  ~Listener() {
    for (const int filler : fillers_) ::close(filler);
    ::close(descriptor_);
  }
  Listener(const Listener&) = delete;
  Listener& operator=(const Listener&) = delete;

  bool works() const { return works_; }
  std::uint16_t port() const {
    sockaddr_in6 place{};
    socklen_t size = sizeof place;
    ::getsockname(descriptor_, reinterpret_cast<sockaddr*>(&place), &size);
    return ntohs(place.sin6_port);  // where IPv4 has it, too
  }
  void fill() {
    const sockaddr_storage place = at(port());
    for (int count = 0; count < 4; ++count) {
      const int filler = ::socket(family_, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
      ::connect(filler, reinterpret_cast<const sockaddr*>(&place), sizeof place);
      fillers_.push_back(filler);
    }
  }

 private:
  sockaddr_storage at(std::uint16_t port) const {
    sockaddr_storage place{};
    if (family_ == AF_INET) {
      auto* four = reinterpret_cast<sockaddr_in*>(&place);
      four->sin_family = AF_INET;
      four->sin_port = htons(port);
      four->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    } else {
      auto* six = reinterpret_cast<sockaddr_in6*>(&place);
      six->sin6_family = AF_INET6;
      six->sin6_port = htons(port);
      six->sin6_addr = in6addr_loopback;
    }
    return place;
  }

  int family_;
  int descriptor_;
  bool works_ = false;
  std::vector<int> fillers_;
};

class ConnectorTest : public test::LoopFixture {
 protected:
  async::awaitable<void> connect_into(Address address, std::stop_token stop) {
    auto made = co_await connector_.connect(std::move(address), stop);
    ended_ = true;
    if (made) {
      stream_ = std::move(*made);
    } else {
      error_ = made.error();
    }
  }
  void connect(std::string host, std::uint16_t port) {
    run(connect_into(Address{{}, std::move(host), port}, {}));
  }

  test::ManualClock clock_;
  Connector connector_{executor(), clock_, 3s};
  std::unique_ptr<Stream> stream_;
  Error error_;
  bool ended_ = false;
};

TEST_F(ConnectorTest, ANameIsLookedUp) {
  const Listener listener(AF_INET);
  ASSERT_TRUE(listener.works());
  connect("127.1", listener.port());  // a name to this client; every resolver knows its address
  ASSERT_TRUE(stream_) << error_.message;
  EXPECT_EQ(stream_->family(), AF_INET);
}

TEST_F(ConnectorTest, ANameThatNobodyKnowsIsTold) {
  const std::string name = std::string(70, 'a') + ".example";  // longer than a label may be
  connect(name, 80);
  EXPECT_EQ(error_.code, ErrorCode::engine_failed);
  EXPECT_TRUE(error_.message.starts_with("cannot find '" + name + "': ")) << error_.message;
  EXPECT_TRUE(error_.message.ends_with("and that this machine's name service knows it"));
}

TEST_F(ConnectorTest, ARefusedPlaceIsToldWithWhatToDo) {
  std::uint16_t port = 0;
  {
    const Listener gone(AF_INET);
    port = gone.port();
  }
  connect("127.0.0.1", port);
  EXPECT_EQ(error_.message,
            "cannot connect to 127.0.0.1:" + std::to_string(port) +
                ": Connection refused; nothing listens there: start the server, or correct its "
                "host and port");
}

TEST_F(ConnectorTest, TheOtherFamilyIsTriedAtOnceWhereTheFirstRefuses) {
  const Listener listener(AF_INET6);
  if (!listener.works()) GTEST_SKIP() << "no IPv6 loopback here";
  connect("localhost", listener.port());
  ASSERT_TRUE(stream_) << error_.message;
  EXPECT_EQ(stream_->family(), AF_INET6);
}

TEST_F(ConnectorTest, TheOtherFamilyIsTriedAQuarterOfASecondLaterWhereTheFirstIsSilent) {
  Listener silent(AF_INET, 0, 0);
  ASSERT_TRUE(silent.works());
  silent.fill();
  const Listener listener(AF_INET6, silent.port());
  if (!listener.works()) GTEST_SKIP() << "no IPv6 loopback here";
  start(connect_into(Address{{}, "localhost", silent.port()}, {}));
  poll();
  clock_.advance(249ms);
  poll();
  EXPECT_FALSE(ended_);
  clock_.advance(1ms);
  run_until([this] { return ended_; });
  ASSERT_TRUE(stream_) << error_.message;
  EXPECT_EQ(stream_->family(), AF_INET6);
}

TEST_F(ConnectorTest, SilenceOfEveryAddressIsATimeout) {
  Listener silent(AF_INET, 0, 0);
  ASSERT_TRUE(silent.works());
  silent.fill();
  start(connect_into(Address{{}, "localhost", silent.port()}, {}));
  for (int step = 0; step < 12; ++step) {
    poll();
    EXPECT_FALSE(ended_);
    clock_.advance(250ms);
  }
  run_until([this] { return ended_; });
  EXPECT_EQ(error_.code, ErrorCode::engine_timeout);
}

TEST_F(ConnectorTest, AStopEndsEveryAttempt) {
  Listener silent(AF_INET, 0, 0);
  ASSERT_TRUE(silent.works());
  silent.fill();
  std::stop_source stop;
  start(connect_into(Address{{}, "localhost", silent.port()}, stop.get_token()));
  poll();
  clock_.advance(250ms);
  poll();
  stop.request_stop();
  run_until([this] { return ended_; });
  EXPECT_EQ(error_.code, ErrorCode::cancelled);
}

}  // namespace
}  // namespace werk::http
