#include "werk/engine/worker/worker.hpp"

#include <fmt/format.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>

#include "werk/base/assert.hpp"
#include "werk/base/log.hpp"

namespace werk::engine::worker {
namespace {

constexpr std::chrono::seconds kUnloadLimit{10};
constexpr std::size_t kReadRoom = http::Stream::kBufferMax;

Error gone(std::string why) { return {ErrorCode::engine_failed, std::move(why), Origin::engine}; }

tl::unexpected<Error> out_of_turn(std::string_view what) {
  return fail(gone(fmt::format("the worker broke its protocol: {} came out of turn", what)));
}

RequestId id_of(const FromWorker& message) {
  return std::visit(
      [](const auto& one) -> RequestId {
        if constexpr (requires { one.id; }) return one.id;
        return 0;
      },
      message);
}

// The last answer to a request.
bool is_last(const FromWorker& message) {
  return std::holds_alternative<Loaded>(message) || std::holds_alternative<Unloaded>(message) ||
         std::holds_alternative<GenerationFinished>(message) ||
         std::holds_alternative<Counted>(message) || std::holds_alternative<Failed>(message);
}

// Which answers belong to which request.
bool fits(Worker::Kind kind, const FromWorker& message) {
  if (std::holds_alternative<Failed>(message)) return true;
  switch (kind) {
    case Worker::Kind::load:
      return std::holds_alternative<Progress>(message) || std::holds_alternative<Loaded>(message);
    case Worker::Kind::unload: return std::holds_alternative<Unloaded>(message);
    case Worker::Kind::generate:
      return std::holds_alternative<GenerationStarted>(message) ||
             std::holds_alternative<TokenEvent>(message) ||
             std::holds_alternative<GenerationFinished>(message);
    case Worker::Kind::count: return std::holds_alternative<Counted>(message);
  }
  return false;
}

bool is_slow(Worker::Kind kind) { return kind != Worker::Kind::count; }

}  // namespace

Worker::Worker(async::Executor executor, async::Clock& clock, std::unique_ptr<process::Child> child,
               int descriptor, async::Duration cancel_limit)
    : executor_(executor),
      clock_(clock),
      cancel_limit_(cancel_limit),
      child_(std::move(child)),
      stream_(executor, descriptor, AF_UNIX),
      tasks_(executor),
      life_(executor),
      hello_come_(executor),
      became_idle_(executor),
      exited_(executor) {
  tasks_.spawn(read());
  life_.spawn(watch_child());
}

Worker::~Worker() { WERK_ASSERT(exited_.is_set()); }

async::awaitable<Result<Hello>> Worker::hello(std::stop_token stop) {
  const bool come = co_await hello_come_.wait(stop);
  if (end_) co_return fail(*end_);
  if (!come) co_return fail(ErrorCode::cancelled, "stopped while the worker started");
  co_return *hello_;
}

Worker::Asked Worker::ask(Kind kind, const std::function<std::string(RequestId)>& message) {
  const RequestId id = next_id_++;
  const Asked asked(std::make_shared<Request>(id, kind, executor_));
  if (end_) {
    asked->ended_ = true;
    asked->arrived_.set();
    return asked;
  }
  WERK_ASSERT(!is_slow(kind) || !is_busy());
  open_[id] = asked;
  if (is_slow(kind)) {
    slow_ = asked;
    became_idle_.reset();
  }
  send(message(id));
  return asked;
}

async::awaitable<Result<FromWorker>> Worker::next(Asked asked, std::stop_token stop) {
  while (asked->inbox_.empty()) {
    if (end_) co_return fail(*end_);
    WERK_ASSERT(!asked->ended_);
    const bool come = co_await asked->arrived_.wait(stop);
    if (!come) co_return fail(ErrorCode::cancelled, "the caller left");
  }
  FromWorker first = std::move(asked->inbox_.front());
  asked->inbox_.pop_front();
  if (asked->inbox_.empty() && !end_) asked->arrived_.reset();
  co_return first;
}

void Worker::cancel(const Asked& asked) {
  if (asked->ended_ || end_ || asked->kind_ != Kind::generate || cancel_timer_) return;
  send(cancel_message(asked->id_));
  arm_cancel_limit();
}

void Worker::give_up(const Asked& asked) {
  asked->given_up_ = true;
  asked->inbox_.clear();
  cancel(asked);
}

void Worker::arm_cancel_limit() {
  cancel_timer_ = clock_.call_at(clock_.now() + cancel_limit_, [this] {
    break_off(gone(fmt::format("the worker did not confirm a cancel within {:.1f} s",
                               std::chrono::duration<double>(cancel_limit_).count())));
  });
}

async::awaitable<Status> Worker::idle(std::stop_token stop) {
  while (is_busy() && !end_) {
    const bool idle = co_await became_idle_.wait(stop);
    if (!idle) co_return fail(ErrorCode::cancelled, "the caller left");
  }
  if (end_) co_return fail(*end_);
  co_return Status();
}

async::awaitable<void> Worker::stop(async::Duration grace) {
  if (!end_) send(stop_message());
  process::Grace limit{};
  limit.term = grace;
  co_await child_->stop(limit);
  co_await exited_.wait();
}

async::awaitable<bool> Worker::unload() {
  if (end_ || is_busy()) co_return false;
  const Asked asked = ask(Kind::unload, unload_message);
  const std::stop_token never;
  async::Deadline limit(clock_, kUnloadLimit, never);
  const Result<FromWorker> answer = co_await next(asked, limit.token());
  co_return answer&& std::holds_alternative<Unloaded>(*answer);
}

// ---- the channel

async::awaitable<void> Worker::read() {
  while (!end_) {
    co_await stream_.arrival(kReadRoom);
    const std::span<char> unread = stream_.unread();
    if (!unread.empty()) {
      frames_.feed(std::string_view(unread.data(), unread.size()));
      stream_.consume(unread.size());
      Status taken = take_frames();
      if (!taken) break_off(std::move(taken.error()));
    }
    // Its end is told by watch_child(), which knows how it ended; a worker that only closes its
    // channel is of no use.
    if (stream_.end() != http::StreamEnd::open) {
      child_->signal(SIGKILL);
      co_return;
    }
  }
}

async::awaitable<void> Worker::watch_child() {
  co_await child_->exited().wait();
  const std::string how = child_->status() ? child_->status()->text() : "ended";
  break_off(gone("the worker ended: " + how));
  co_await tasks_.join();
  if (on_gone_) on_gone_();
  exited_.set();
}

Status Worker::take_frames() {
  while (true) {
    const auto frame = frames_.next();
    if (!frame) return fail(frame.error());
    if (!*frame) return {};
    auto message = read_message(**frame);
    if (!message) return pass_on(message);
    if (Status taken = take(std::move(*message)); !taken) return taken;
  }
}

Status Worker::take(FromWorker message) {
  if (const auto* fault = std::get_if<Fault>(&message)) {
    // In the place of hello: it can't run at all, and says what to do.
    if (!hello_) return fail(gone(fault->message));
    return fail(gone("the worker says that the node broke the protocol: " + fault->message));
  }
  if (auto* hello = std::get_if<Hello>(&message)) {
    if (hello_) return out_of_turn("a second hello");
    hello_ = std::move(*hello);
    hello_come_.set();
    return {};
  }
  if (!hello_) return out_of_turn("a message before hello");
  if (std::holds_alternative<Pong>(message)) return {};
  const RequestId id = id_of(message);
  return take_answer(id, std::move(message));
}

Status Worker::take_answer(RequestId id, FromWorker message) {
  const auto found = open_.find(id);
  if (found == open_.end()) return out_of_turn(fmt::format("an answer to nothing (id {})", id));
  const Asked asked = found->second;
  if (!fits(asked->kind_, message)) return out_of_turn("an answer of another kind");
  const bool starts = std::holds_alternative<GenerationStarted>(message);
  if (starts && asked->started_) return out_of_turn("a second \"started\"");
  const bool needs_start = std::holds_alternative<TokenEvent>(message) ||
                           (std::holds_alternative<GenerationFinished>(message) &&
                            std::get<GenerationFinished>(message).reason != EndReason::cancelled);
  if (needs_start && !asked->started_) return out_of_turn("an answer before \"started\"");
  asked->started_ = asked->started_ || starts;
  if (is_last(message)) {
    asked->ended_ = true;
    open_.erase(found);
    if (slow_ == asked) {
      slow_.reset();
      cancel_timer_.reset();
      became_idle_.set();
    }
  }
  if (asked->given_up_) return {};
  // A reader that is slower than its worker costs the text, not an entry for each token.
  auto* token = std::get_if<TokenEvent>(&message);
  auto* last = asked->inbox_.empty() ? nullptr : std::get_if<TokenEvent>(&asked->inbox_.back());
  if (token != nullptr && last != nullptr) {
    last->bytes += token->bytes;
    last->tokens += token->tokens;
  } else {
    asked->inbox_.push_back(std::move(message));
  }
  asked->arrived_.set();
  return {};
}

void Worker::send(const std::string& text) {
  outbox_.push_back(frame_of(text));
  if (writing_) return;
  writing_ = true;
  tasks_.spawn(write());
}

async::awaitable<void> Worker::write() {
  while (!outbox_.empty() && !end_) {
    const std::string frame = std::move(outbox_.front());
    outbox_.pop_front();
    const std::array<std::string_view, 1> parts = {frame};
    const std::size_t sent = stream_.send_now(parts);
    if (sent == frame.size()) continue;
    const bool whole = co_await stream_.send_rest(parts, sent, http::Stream::Interrupt::never);
    if (!whole) break;  // the reader sees the end too
  }
  writing_ = false;
}

// ---- the end

void Worker::break_off(Error why) {
  if (end_) return;
  log::debug("worker {}: {}", child_->pid(), why.message);
  end_ = std::move(why);
  cancel_timer_.reset();
  stream_.close();
  child_->signal(SIGKILL);
  tell_everybody();
}

void Worker::tell_everybody() {
  hello_come_.set();
  became_idle_.set();
  for (const auto& [id, asked] : open_) {
    asked->ended_ = true;
    asked->arrived_.set();
  }
  open_.clear();
  slow_.reset();
}

}  // namespace werk::engine::worker
