// TaskGroup: the owner of spawned coroutines. Every spawned task belongs to one; join() returns
// when all have ended, and a group must be joined before it is destroyed. Tasks don't throw: one
// that does ends the process with the reason, since its owner's state can no longer be trusted.
// Loop thread only.
#pragma once

#include <cstddef>

#include "werk/async/awaitable.hpp"
#include "werk/async/event.hpp"

namespace werk::async {

class TaskGroup {
 public:
  explicit TaskGroup(Executor executor) : idle_(std::move(executor)) { idle_.set(); }
  TaskGroup(const TaskGroup&) = delete;
  TaskGroup& operator=(const TaskGroup&) = delete;
  ~TaskGroup();

  // Starts the task in a fresh turn of the loop.
  void spawn(awaitable<void> task);
  std::size_t running() const { return running_; }

  // Waits until no task runs. Tasks may be spawned while it waits.
  awaitable<void> join();

 private:
  Event idle_;
  std::size_t running_ = 0;
};

}  // namespace werk::async
