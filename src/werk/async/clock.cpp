#include "werk/async/clock.hpp"

#include <boost/asio/steady_timer.hpp>

#include "werk/async/event.hpp"

namespace werk::async {

namespace asio = boost::asio;

namespace {

// The handler may be queued already when the owner destroys the timer, so it holds the state with
// shared ownership and looks at `live` first.
class SteadyTimer final : public Timer {
 public:
  SteadyTimer(const Executor& executor, TimePoint due, std::function<void()> callback)
      : state_(std::make_shared<State>(executor, std::move(callback))) {
    state_->timer.expires_at(due);
    state_->timer.async_wait([state = state_](boost::system::error_code) {
      if (!state->live) return;
      state->live = false;
      const std::function<void()> callback_now = std::move(state->callback);
      callback_now();
    });
  }
  ~SteadyTimer() override {
    state_->live = false;
    state_->timer.cancel();
  }

 private:
  struct State {
    State(const Executor& executor, std::function<void()> call)
        : timer(executor), callback(std::move(call)) {}
    asio::steady_timer timer;
    std::function<void()> callback;
    bool live = true;
  };
  std::shared_ptr<State> state_;
};

}  // namespace

std::unique_ptr<Timer> SteadyClock::call_at(TimePoint due, std::function<void()> callback) {
  return std::make_unique<SteadyTimer>(executor_, due, std::move(callback));
}

Deadline::Deadline(Clock& clock, Duration limit, std::stop_token outer)
    : clock_(clock), limit_(limit), outer_(outer, [this] { source_.request_stop(); }) {
  arm();
}

void Deadline::restart() {
  if (!source_.stop_requested()) arm();
}

void Deadline::arm() {
  if (limit_ <= Duration::zero()) return;
  timer_ = clock_.call_at(clock_.now() + limit_, [this] {
    if (source_.stop_requested()) return;
    expired_ = true;
    source_.request_stop();
  });
}

awaitable<bool> sleep_for(Clock& clock, Executor executor, Duration duration,
                          std::stop_token stop) {
  if (stop.stop_requested()) co_return false;
  if (duration <= Duration::zero()) co_return true;
  Event over(std::move(executor));
  const auto timer = clock.call_at(clock.now() + duration, [&over] { over.set(); });
  const bool slept = co_await over.wait(stop);
  co_return slept;
}

}  // namespace werk::async
