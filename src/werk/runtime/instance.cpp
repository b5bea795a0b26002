#include "werk/runtime/instance.hpp"

#include "werk/base/log.hpp"

namespace werk::runtime {

using namespace std::chrono_literals;

namespace {

constexpr auto kSlowLine = 2s;
// A decoding slot is free within some 50 ms of the disconnect; a prompt's batch may take seconds.
constexpr auto kFirstLook = 50ms;
constexpr auto kNextLooks = 500ms;

Error refused(ErrorCode code, std::string message,
              std::optional<std::chrono::seconds> retry_after = {}) {
  Error error{code, std::move(message)};
  error.retry_after = retry_after;
  return error;
}

Error died() {
  return refused(ErrorCode::engine_failed, "the engine ended before the call reached it", 1s);
}

}  // namespace

Instance::Instance(std::unique_ptr<engine::Runtime> runtime, async::Clock& clock,
                   async::TaskGroup& tasks, async::Executor executor, std::size_t waiting_max)
    : runtime_(std::move(runtime)),
      clock_(clock),
      tasks_(tasks),
      executor_(std::move(executor)),
      line_(runtime_->facts().slots, waiting_max) {}

async::awaitable<Status> Instance::enter(PermitRequest request, std::stop_token stop) {
  if (end_cause_) co_return fail(*end_cause_);
  if (dead_) co_return fail(died());
  const CallId call = request.call;
  const std::size_t weight = request.weight;
  switch (line_.arrive(std::move(request))) {
    case PermitLine::Answer::granted: co_return Status();
    case PermitLine::Answer::waits: break;
    case PermitLine::Answer::line_full:
      co_return fail(refused(
          ErrorCode::queue_full,
          fmt::format("{} calls already wait for this model; try again shortly", line_.waiting()),
          2s));
    case PermitLine::Answer::too_heavy: {
      Error error =
          refused(ErrorCode::unsupported,
                  fmt::format("n = {} needs as many slots at once, and this model runs with {}; "
                              "start the node with --parallel {} or ask for fewer choices",
                              weight, line_.permits(), weight));
      error.origin = Origin::client;
      error.param = "n";
      co_return fail(std::move(error));
    }
  }
  Waiter waiter(executor_);
  waiters_[call] = &waiter;
  const std::unique_ptr<async::Timer> note = slow_line_note();
  const bool answered = co_await waiter.answered.wait(stop);
  waiters_.erase(call);
  if (!answered) {
    wake(line_.cancel(call));
    co_return fail(ErrorCode::cancelled, "the caller left while it waited for a slot");
  }
  if (waiter.refusal) co_return fail(std::move(*waiter.refusal));
  co_return Status();
}

void Instance::leave(CallId call, PermitLine::After after) {
  wake(line_.release(call, dead_ ? PermitLine::After::free : after));
  if (line_.quarantined() == 0 || watching_quarantine_ || dead_) return;
  watching_quarantine_ = true;
  tasks_.spawn(watch_quarantine(shared_from_this()));
}

void Instance::mark_dead() {
  if (dead_) return;
  dead_ = true;
  dismiss(died());
}

void Instance::refuse_waiting() {
  dismiss(refused(ErrorCode::draining, "the node is shutting down; the call was not begun", 5s));
}

void Instance::end(Error cause) {
  end_cause_ = std::move(cause);
  dismiss(*end_cause_);
  ended_.request_stop();
}

void Instance::add_usage(const Usage& more) {
  usage_.calls += more.calls;
  usage_.prompt_tokens_cached += more.prompt_tokens_cached;
  usage_.prompt_tokens_new += more.prompt_tokens_new;
  usage_.output_tokens += more.output_tokens;
  usage_.tells_cached = usage_.tells_cached || more.tells_cached;
}

void Instance::wake(const std::vector<CallId>& granted) {
  for (const CallId call : granted) {
    const auto waiter = waiters_.find(call);
    if (waiter != waiters_.end()) waiter->second->answered.set();
  }
}

void Instance::dismiss(const Error& reason) {
  for (const CallId call : line_.dismiss_waiting()) {
    const auto waiter = waiters_.find(call);
    if (waiter == waiters_.end()) continue;
    waiter->second->refusal = reason;
    waiter->second->answered.set();
  }
}

std::unique_ptr<async::Timer> Instance::slow_line_note() {
  if (slow_line_told_) return nullptr;
  return clock_.call_at(clock_.now() + kSlowLine, [this] {
    if (slow_line_told_) return;
    slow_line_told_ = true;
    log::info(
        "a call has waited 2 s for one of {} slot(s): --parallel N gives each runtime more, and "
        "each slot needs "
        "memory for its own context",
        line_.permits());
  });
}

async::awaitable<void> Instance::watch_quarantine([[maybe_unused]] std::shared_ptr<Instance> self) {
  async::Duration pause = kFirstLook;
  while (!dead_ && line_.quarantined() > 0) {
    const std::stop_token never;
    co_await async::sleep_for(clock_, executor_, pause, never);
    pause = kNextLooks;
    if (dead_) break;
    const Result<std::size_t> busy = co_await runtime_->busy_slots(never);
    if (busy) wake(line_.engine_works_on(*busy));
  }
  watching_quarantine_ = false;
}

}  // namespace werk::runtime
