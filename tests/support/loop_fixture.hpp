// A loop for tests. run() drives one coroutine to its end on a real loop, with a watchdog that
// fails the test; poll() lets everything that is ready happen, for tests that move events by hand.
#pragma once

#include <gtest/gtest.h>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/steady_timer.hpp>
#include <exception>
#include <memory>

#include "werk/async/loop.hpp"

namespace werk::test {

constexpr std::chrono::seconds kWatchdog{30};

class LoopFixture : public ::testing::Test {
 protected:
  async::Executor executor() { return loop_.executor(); }

  // Starts a coroutine that goes on in later poll() and run() calls.
  void start(async::awaitable<void> task) {
    boost::asio::co_spawn(loop_.executor(), std::move(task), [](std::exception_ptr thrown) {
      if (thrown) std::rethrow_exception(thrown);
    });
  }

  void run(async::awaitable<void> task) {
    bool ended = false;
    boost::asio::co_spawn(loop_.executor(), std::move(task),
                          [&ended, this](std::exception_ptr thrown) {
                            ended = true;
                            loop_.stop();
                            if (thrown) std::rethrow_exception(thrown);
                          });
    run_until([&ended] { return ended; });
  }

  // Runs turns until the condition holds; fails the test when the watchdog bites first.
  template <class Condition>
  void run_until(Condition condition) {
    boost::asio::steady_timer watchdog(loop_.context(), kWatchdog);
    // Shared with the handler, which a later poll() runs after this call has returned.
    const auto bitten = std::make_shared<bool>(false);
    watchdog.async_wait([bitten](boost::system::error_code error) { *bitten = !error; });
    while (!condition() && !*bitten) {
      if (loop_.context().stopped()) loop_.context().restart();
      loop_.context().run_one();
    }
    if (loop_.context().stopped()) loop_.context().restart();
    ASSERT_FALSE(*bitten) << "nothing happened for " << kWatchdog.count() << " s";
  }

  // Lets everything happen that can without waiting.
  void poll() {
    while (loop_.poll() > 0) {
    }
  }

  async::Loop loop_;
};

}  // namespace werk::test
