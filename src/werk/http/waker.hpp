// Waker: where one coroutine waits for a completion that is delivered by a plain callback. Cheaper
// than an Event (no timer) and for one waiter only. Owned by the I/O object the coroutine waits
// for; inside http only, loop thread only.
#pragma once

#include <boost/asio/async_result.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <optional>
#include <utility>

#include "werk/async/awaitable.hpp"
#include "werk/base/assert.hpp"

namespace werk::http {

class Waker {
 public:
  bool waiting() const { return handler_.has_value(); }

  async::awaitable<void> wait() {
    return boost::asio::async_initiate<const boost::asio::use_awaitable_t<>, void()>(
        Initiation{this}, boost::asio::use_awaitable);
  }

  // Resumes the waiter on this stack: only from a completion handler of the loop, as its last act.
  void wake_now() {
    if (!handler_) return;
    Handler handler = std::move(*handler_);
    handler_.reset();
    std::move(handler)();
  }

  // Resumes the waiter in a fresh turn.
  void wake_soon(const async::Executor& executor) {
    if (!handler_) return;
    Handler handler = std::move(*handler_);
    handler_.reset();
    boost::asio::post(executor, std::move(handler));
  }

 private:
  using Handler = boost::asio::async_result<boost::asio::use_awaitable_t<>, void()>::handler_type;
  struct Initiation {
    Waker* waker;
    void operator()(Handler handler) const {
      WERK_ASSERT(!waker->handler_);
      waker->handler_.emplace(std::move(handler));
    }
  };

  std::optional<Handler> handler_;
};

}  // namespace werk::http
