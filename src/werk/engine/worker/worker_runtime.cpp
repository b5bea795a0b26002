#include "werk/engine/worker/worker_runtime.hpp"

#include <fmt/format.h>

#include "werk/base/digest.hpp"
#include "werk/base/log.hpp"
#include "werk/base/text.hpp"
#include "werk/engine/worker/answer_chunks.hpp"
#include "werk/engine/worker/chat_task.hpp"

namespace werk::engine::worker {
namespace {

constexpr std::size_t kSeedBytes = 12;
constexpr std::size_t kReasonBytesMax = 600;

Error parked() { return {ErrorCode::engine_failed, "its model was unloaded", Origin::engine}; }

// One generation. It borrows the worker, which its runtime keeps until every lease has ended.
class Generation final : public ChatStream {
 public:
  Generation(Worker& worker, Worker::Asked asked, const ChatTask& task, const std::string& model)
      : worker_(worker), asked_(std::move(asked)), chunks_(task, model, random_hex(kSeedBytes)) {}
  ~Generation() override {
    if (!asked_->has_ended()) worker_.give_up(asked_);
  }
  Generation(const Generation&) = delete;
  Generation& operator=(const Generation&) = delete;

  async::awaitable<Result<std::string>> next(std::stop_token stop) override {
    while (true) {
      if (std::optional<std::string> chunk = chunks_.next()) co_return std::move(*chunk);
      Result<FromWorker> message = co_await worker_.next(asked_, stop);
      if (!message) co_return pass_on(message);
      Status taken = take(*message);
      if (!taken) co_return pass_on(taken);
    }
  }

 private:
  Status take(FromWorker& message) {
    if (auto* failed = std::get_if<Failed>(&message)) return fail(std::move(failed->error));
    if (const auto* started = std::get_if<GenerationStarted>(&message)) chunks_.started(*started);
    if (const auto* token = std::get_if<TokenEvent>(&message)) {
      chunks_.token(*token);
      if (chunks_.met_stop()) worker_.cancel(asked_);
    }
    const auto* finished = std::get_if<GenerationFinished>(&message);
    if (finished == nullptr) return {};
    const bool wanted = chunks_.met_stop() || finished->reason != EndReason::cancelled;
    if (!wanted) {
      return fail(ErrorCode::engine_failed, Origin::engine,
                  "the worker cancelled a generation that nobody had cancelled");
    }
    chunks_.finished(*finished);
    return {};
  }

  Worker& worker_;
  Worker::Asked asked_;
  AnswerChunks chunks_;
};

}  // namespace

WorkerRuntime::WorkerRuntime(std::unique_ptr<Worker> worker, RuntimeFacts facts,
                             std::string model_name, Masker masker, Park park,
                             async::Executor executor)
    : worker_(std::move(worker)),
      facts_(std::move(facts)),
      model_name_(std::move(model_name)),
      masker_(std::move(masker)),
      park_(std::move(park)),
      exited_(std::move(executor)) {
  profile_.names_tools_as_objects = true;
  profile_.tells_stop_when_verbose = true;
  profile_.reports_progress = true;
  profile_.takes_later_system = facts_.takes_later_system;
  worker_->on_gone([this] { note_end(); });
}

WorkerRuntime::~WorkerRuntime() = default;

std::string WorkerRuntime::exit_reason() const { return exit_reason_; }

void WorkerRuntime::note_end() {
  exit_reason_ = worker_->end()->message;
  const std::string tail = masker_.apply(worker_->child().output_tail());
  const std::string_view last =
      trim(std::string_view(tail).substr(tail.size() - std::min(tail.size(), kReasonBytesMax)));
  if (!stopping_ && !last.empty()) exit_reason_ += fmt::format(": {}", printable(last));
  exited_.set();
}

async::awaitable<Result<std::size_t>> WorkerRuntime::busy_slots(std::stop_token) {
  // One that is about to end takes no call: who waits for it gets the next one.
  co_return worker_ != nullptr && (worker_->is_busy() || worker_->end()) ? 1 : 0;
}

async::awaitable<Result<std::unique_ptr<ChatStream>>> WorkerRuntime::chat(std::string body,
                                                                          std::stop_token stop) {
  Result<ChatTask> task = read_chat_task(body);
  if (!task) co_return pass_on(task);
  if (!worker_) co_return fail(parked());
  Status idle = co_await worker_->idle(stop);
  if (!idle) co_return pass_on(idle);
  const auto message = [&task](RequestId id) { return generate_message(id, *task); };
  Worker::Asked asked = worker_->ask(Worker::Kind::generate, message);
  std::unique_ptr<ChatStream> stream =
      std::make_unique<Generation>(*worker_, std::move(asked), *task, model_name_);
  co_return stream;
}

async::awaitable<Result<std::uint64_t>> WorkerRuntime::count(std::string body,
                                                             std::stop_token stop) {
  Result<ChatTask> task = read_chat_task(body);
  if (!task) co_return pass_on(task);
  if (!worker_) co_return fail(parked());
  const auto message = [&task](RequestId id) { return count_message(id, *task); };
  const Worker::Asked asked = worker_->ask(Worker::Kind::count, message);
  Result<FromWorker> answer = co_await worker_->next(asked, stop);
  if (!answer) {
    worker_->give_up(asked);
    co_return pass_on(answer);
  }
  if (auto* failed = std::get_if<Failed>(&*answer)) co_return fail(std::move(failed->error));
  co_return std::get<Counted>(*answer).tokens;
}

async::awaitable<void> WorkerRuntime::stop(async::Duration grace) {
  if (!stopping_) {
    stopping_ = true;
    bool unloaded = false;
    if (park_) unloaded = co_await worker_->unload();
    if (unloaded) {
      exit_reason_ = "its model was unloaded";
      worker_->on_gone({});
      park_(std::move(worker_));
      exited_.set();
      co_return;
    }
    co_await worker_->stop(grace);
  }
  co_await exited_.wait();
}

}  // namespace werk::engine::worker
