#include "werk/async/task_group.hpp"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <cstdlib>
#include <exception>

#include "werk/base/assert.hpp"
#include "werk/base/log.hpp"

namespace werk::async {

namespace asio = boost::asio;

namespace {

[[noreturn]] void task_threw(const std::exception_ptr& thrown) {
  try {
    std::rethrow_exception(thrown);
  } catch (const std::exception& error) {
    log::error("a task threw: {}", error.what());
  } catch (...) {
    log::error("a task threw something that is no exception");
  }
  log::stop();
  std::abort();
}

// The task is started from a posted turn: co_spawn itself would run it up to its first wait on the
// caller's stack.
awaitable<void> in_fresh_turn(awaitable<void> task) {
  const Executor executor = co_await asio::this_coro::executor;
  co_await asio::post(executor, asio::use_awaitable);
  co_await std::move(task);
}

}  // namespace

TaskGroup::~TaskGroup() {
  WERK_ASSERT(running_ == 0);
}

void TaskGroup::spawn(awaitable<void> task) {
  ++running_;
  idle_.reset();
  asio::co_spawn(idle_.executor(), in_fresh_turn(std::move(task)),
                 [this](const std::exception_ptr& thrown) {
                   if (thrown) task_threw(thrown);
                   if (--running_ == 0) idle_.set();
                 });
}

awaitable<void> TaskGroup::join() {
  while (running_ > 0)
    co_await idle_.wait();
}

}  // namespace werk::async
