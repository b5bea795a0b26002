#include "werk/process/signals.hpp"

#include <boost/asio/signal_set.hpp>
#include <csignal>

namespace werk::process {

struct SignalWatch::State : std::enable_shared_from_this<SignalWatch::State> {
  State(const async::Executor& executor, std::function<void(int)> call)
      : signals(executor, SIGTERM, SIGINT, SIGHUP), on_signal(std::move(call)) {}

  void wait() {
    signals.async_wait([self = shared_from_this()](boost::system::error_code error, int number) {
      if (error || !self->live) return;
      self->wait();
      self->on_signal(number);
    });
  }

  boost::asio::signal_set signals;
  std::function<void(int)> on_signal;
  bool live = true;
};

SignalWatch::SignalWatch(async::Executor executor, std::function<void(int)> on_signal)
    : state_(std::make_shared<State>(executor, std::move(on_signal))) {
  std::signal(SIGPIPE, SIG_IGN);
  state_->wait();
}

SignalWatch::~SignalWatch() {
  state_->live = false;
  // The state may outlive us until the loop goes; the signals are the system's again at once. The
  // wait is ended first: one that stays behind without signals would keep the state for ever.
  boost::system::error_code ignored;
  state_->signals.cancel(ignored);
  state_->signals.clear(ignored);
}

}  // namespace werk::process
