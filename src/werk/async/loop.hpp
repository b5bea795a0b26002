// Loop: the one thread of the node that owns all state. Created in main (or in a test), run() on
// the main thread; everything named "loop thread only" happens inside it. post() is the one call
// that other threads may make.
#pragma once

#include <boost/asio/io_context.hpp>
#include <functional>

#include "werk/async/awaitable.hpp"

namespace werk::async {

class Loop {
 public:
  Executor executor() { return context_.get_executor(); }
  // Runs until no work is left or stop() is called.
  void run();
  // Runs turns until the condition, looked at after each, holds; then what is ready, once.
  void run_until(const std::function<bool()>& condition);
  void stop() { context_.stop(); }
  // Runs what is ready now, without waiting; returns the number of turns. For tests.
  std::size_t poll();
  void post(std::function<void()> turn);
  boost::asio::io_context& context() { return context_; }

 private:
  boost::asio::io_context context_{
      1};  // one thread: Asio may leave out its locks' contention paths
};

}  // namespace werk::async
