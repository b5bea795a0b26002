// Worker: one resident worker program and the channel to it. It holds the state of the protocol
// (docs/worker-protocol.md): what was asked, what answers may come, and what to do with them; a
// message that may not come, a broken channel, or a cancel that isn't confirmed in time ends the
// worker, and everybody who waits learns why. Owned by a WorkerRuntime or by the engine that parks
// it; must be joined before it is destroyed. Loop thread only.
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "werk/async/clock.hpp"
#include "werk/async/event.hpp"
#include "werk/async/task_group.hpp"
#include "werk/base/result.hpp"
#include "werk/engine/worker/frames.hpp"
#include "werk/engine/worker/messages.hpp"
#include "werk/http/stream.hpp"
#include "werk/process/child.hpp"

namespace werk::engine::worker {

class Worker {
 public:
  enum class Kind : std::uint8_t { load, unload, generate, count };

  // A request that the worker has been sent; its answers arrive here. Whoever asked keeps it until
  // it has ended, or gives it up.
  class Request {
   public:
    Request(RequestId id, Kind kind, const async::Executor& executor)
        : id_(id), kind_(kind), arrived_(executor) {}

    // Its last answer has come, or never will.
    bool has_ended() const { return ended_; }

   private:
    friend class Worker;

    RequestId id_;
    Kind kind_;
    async::Event arrived_;
    std::deque<FromWorker> inbox_;
    bool started_ = false;  // of a generation
    bool ended_ = false;    // its last answer has come
    bool given_up_ = false;
  };
  // Shared between whoever asked and the worker, which needs it until the last answer has come,
  // even if nobody waits any more.
  using Asked = std::shared_ptr<Request>;

  // `descriptor` is our end of the channel. Reading begins at once.
  Worker(async::Executor executor, async::Clock& clock, std::unique_ptr<process::Child> child,
         int descriptor, async::Duration cancel_limit);
  ~Worker();
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

  // The worker's first message. Fails with engine_failed if it ends or says something else.
  async::awaitable<Result<Hello>> hello(std::stop_token stop);

  Asked ask(Kind kind, const std::function<std::string(RequestId)>& message);
  // Waits for a request's next answer. Fails with `cancelled`, or with why the worker is gone.
  async::awaitable<Result<FromWorker>> next(Asked asked, std::stop_token stop);
  // A generation shall end; it is answered by `finished` as always. Within the limit, else the
  // worker is ended.
  void cancel(const Asked& asked);
  // Nobody waits for this request any more; a running generation is cancelled.
  void give_up(const Asked& asked);

  // Whether a load, an unload or a generation runs.
  bool is_busy() const { return slow_ != nullptr; }
  // Waits until none does, or the worker is gone.
  async::awaitable<Status> idle(std::stop_token stop);

  // Lets go of its model, so that it can load another one. False: it can't, and is of no use.
  async::awaitable<bool> unload();

  // Why it is gone, as soon as that is sure.
  const std::optional<Error>& end() const { return end_; }
  // Set once it is reaped, everybody was told and nothing of it runs in the loop any more; until
  // then it must not be destroyed.
  async::Event& exited() { return exited_; }
  // Called once, right before exited() is set. Empty: nobody is.
  void on_gone(std::function<void()> callback) { on_gone_ = std::move(callback); }
  process::Child& child() { return *child_; }

  // Asks it to stop, kills it after the grace; returns when it is gone.
  async::awaitable<void> stop(async::Duration grace);

 private:
  async::awaitable<void> read();
  async::awaitable<void> write();
  async::awaitable<void> watch_child();
  Status take_frames();
  Status take(FromWorker message);
  Status take_answer(RequestId id, FromWorker message);
  void send(const std::string& text);
  void break_off(Error why);
  void tell_everybody();
  void arm_cancel_limit();

  async::Executor executor_;
  async::Clock& clock_;
  async::Duration cancel_limit_;
  std::unique_ptr<process::Child> child_;
  http::Stream stream_;
  FrameReader frames_{kFromWorkerBytesMax};
  async::TaskGroup tasks_;  // on the channel
  async::TaskGroup life_;
  std::function<void()> on_gone_;
  async::Event hello_come_;
  async::Event became_idle_;
  async::Event exited_;
  std::optional<Hello> hello_;
  std::map<RequestId, Asked> open_;
  Asked slow_;  // the load, unload or generation that runs
  std::deque<std::string> outbox_;
  bool writing_ = false;
  std::unique_ptr<async::Timer> cancel_timer_;
  std::optional<Error> end_;
  RequestId next_id_ = 1;
};

}  // namespace werk::engine::worker
