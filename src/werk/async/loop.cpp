#include "werk/async/loop.hpp"

#include <boost/asio/post.hpp>

namespace werk::async {

void Loop::run() { context_.run(); }

void Loop::run_until(const std::function<bool()>& condition) {
  while (!condition()) context_.run_one();
  poll();
}

std::size_t Loop::poll() {
  if (context_.stopped()) context_.restart();
  return context_.poll();
}

void Loop::post(std::function<void()> turn) { boost::asio::post(context_, std::move(turn)); }

}  // namespace werk::async
