// Offload: where blocking work goes (hashing, directory scans, name look-ups), so that the loop
// never waits. A few threads, owned by main, joined when it is destroyed. run() returns on the loop
// thread with the work's value. The work must not touch state of the loop; it cannot be cancelled,
// so it is short or bounded.
#pragma once

#include <boost/asio/post.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/thread_pool.hpp>
#include <optional>

#include "werk/async/awaitable.hpp"
#include "werk/async/event.hpp"

namespace werk::async {

class Offload {
 public:
  explicit Offload(std::size_t threads = 2) : pool_(threads) {}
  ~Offload() { pool_.join(); }

  template <class Work>
  auto run(Work work) -> awaitable<std::invoke_result_t<Work&>> {
    using Value = std::invoke_result_t<Work&>;
    const Executor loop = co_await boost::asio::this_coro::executor;
    Job<Work, Value> job(loop, std::move(work));
    boost::asio::post(pool_, [&job] {
      job.value.emplace(job.work());
      boost::asio::post(job.done.executor(), [&job] { job.done.set(); });
    });
    // Nothing cancels this wait: the job lives in this frame and the pool's thread writes into it.
    co_await job.done.wait();
    co_return std::move(*job.value);
  }

 private:
  template <class Work, class Value>
  struct Job {
    Job(const Executor& loop, Work&& job_work) : work(std::move(job_work)), done(loop) {}
    Work work;
    std::optional<Value> value;
    Event done;
  };

  boost::asio::thread_pool pool_;
};

}  // namespace werk::async
