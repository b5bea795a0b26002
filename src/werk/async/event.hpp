// Event: a flag that coroutines wait for. set() wakes every waiter in a fresh turn of the loop and
// stays set until reset(). Owned by whoever sets it; must outlive its waiters. Loop thread only.
#pragma once

#include <boost/asio/steady_timer.hpp>
#include <list>

#include "werk/async/awaitable.hpp"

namespace werk::async {

class Event {
 public:
  explicit Event(Executor executor) : executor_(std::move(executor)) {}
  Event(const Event&) = delete;
  Event& operator=(const Event&) = delete;
  ~Event();

  void set();
  void reset() { set_ = false; }
  bool is_set() const { return set_; }

  // Returns once the event is set: at once if it is. True: it was set. False: `stop` was requested
  // first.
  awaitable<bool> wait(std::stop_token stop);
  // For waits that nothing cancels.
  awaitable<void> wait();

  const Executor& executor() const { return executor_; }

 private:
  struct Waiter {
    boost::asio::steady_timer timer;  // never expires; cancelling it is the wake-up
    bool woken = false;
  };
  static void wake(Waiter& waiter);

  Executor executor_;
  std::list<Waiter*> waiters_;
  bool set_ = false;
};

}  // namespace werk::async
