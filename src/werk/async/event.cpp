#include "werk/async/event.hpp"

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <functional>
#include <optional>

#include "werk/base/assert.hpp"

namespace werk::async {

namespace asio = boost::asio;

Event::~Event() {
  WERK_ASSERT(waiters_.empty());
}

void Event::wake(Waiter& waiter) {
  waiter.woken = true;
  waiter.timer.cancel();
}

void Event::set() {
  set_ = true;
  for (Waiter* waiter : waiters_)
    wake(*waiter);
}

awaitable<bool> Event::wait(std::stop_token stop) {
  if (set_) co_return true;
  if (stop.stop_requested()) co_return false;
  Waiter waiter{asio::steady_timer(executor_, asio::steady_timer::time_point::max())};
  const auto place = waiters_.insert(waiters_.end(), &waiter);
  const auto on_stop = [&waiter] { wake(waiter); };
  std::optional<std::stop_callback<std::function<void()>>> callback;
  callback.emplace(stop, on_stop);
  if (!waiter.woken) {
    constexpr auto kToken = asio::as_tuple(asio::use_awaitable);
    co_await waiter.timer.async_wait(kToken);
  }
  callback.reset();
  waiters_.erase(place);
  co_return set_ || !stop.stop_requested();
}

awaitable<void> Event::wait() {
  co_await wait(std::stop_token());
}

}  // namespace werk::async
