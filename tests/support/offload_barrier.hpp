// OffloadBarrier: what goes on off the loop isn't seen by poll(). It tells, by a job of its own
// behind all others, that everything handed to an Offload of one thread has come back. Owned by one
// test, beside the Offload and its loop; loop thread only.
#pragma once

#include <boost/asio/co_spawn.hpp>
#include <exception>
#include <memory>

#include "werk/async/offload.hpp"

namespace werk::test {

class OffloadBarrier {
 public:
  OffloadBarrier(async::Executor executor, async::Offload& offload)
      : executor_(std::move(executor)), offload_(offload) {}

  // Whether no job is on its way; the loop and the Offload must outlive one that is.
  bool idle() const { return state_ == nullptr || *state_; }
  // Sends the job if none is on its way. True once it has come back; each true needs a new one.
  bool passed() {
    if (state_ == nullptr) {
      state_ = std::make_shared<bool>(false);
      boost::asio::co_spawn(executor_, pass(offload_, state_), [](std::exception_ptr) {});
    }
    if (!*state_) return false;
    state_.reset();
    return true;
  }

 private:
  static async::awaitable<void> pass(async::Offload& offload, std::shared_ptr<bool> state) {
    const auto nothing = [] { return 0; };
    co_await offload.run(nothing);
    *state = true;
  }

  async::Executor executor_;
  async::Offload& offload_;
  // Shared with the job, which may come back when nobody asks any more.
  std::shared_ptr<bool> state_;
};

}  // namespace werk::test
