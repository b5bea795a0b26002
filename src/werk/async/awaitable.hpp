// The one spelling of a coroutine in Werk. awaitable<T> runs on the loop thread; it is started by
// co_await or by a TaskGroup. Cancellation is told through std::stop_token, which is
// level-triggered and crosses library borders: every call that may wait takes one and returns early
// (with ErrorCode::cancelled, or as its comment says) once a stop was requested. A stop callback
// may only set a flag, set an Event, post or close a socket: it never resumes a coroutine on its
// caller's stack.
#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <stop_token>

namespace werk::async {

template <class T>
using awaitable = boost::asio::awaitable<T>;

using Executor = boost::asio::any_io_executor;

}  // namespace werk::async
