#include "werk/engine/output_logs.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>

#include "werk/base/log.hpp"
#include "werk/base/text.hpp"
#include "werk/base/timestamp.hpp"

namespace werk::engine {
namespace {

std::string dropped_note(std::size_t lines, std::string_view why) {
  return fmt::format("=== {} line(s) are missing here: {}\n", lines, why);
}

}  // namespace

// ---- followers

OutputFollower::OutputFollower(OutputLogs& logs, std::optional<std::string> model)
    : logs_(logs), model_(std::move(model)), ended_(logs.ended_), arrived_(logs.executor_) {
  logs_.followers_.push_back(this);
}

OutputFollower::~OutputFollower() {
  std::erase(logs_.followers_, this);
  if (logs_.followers_.empty()) logs_.followers_gone_.set();
}

void OutputFollower::take(const std::string& model, std::string_view text) {
  if (model_ && *model_ != model) return;
  if (queue_.size() + text.size() > OutputLogs::kUnwrittenBytesMax) {
    ++dropped_lines_;
    return;
  }
  if (dropped_lines_ > 0) queue_ += dropped_note(dropped_lines_, "the reader was too slow");
  dropped_lines_ = 0;
  if (!model_ && last_model_ != model) queue_ += output_heading(model);
  last_model_ = model;
  queue_ += text;
  arrived_.set();
}

async::awaitable<Result<std::string>> OutputFollower::next(std::stop_token stop) {
  while (queue_.empty() && !ended_) {
    arrived_.reset();
    const bool arrived = co_await arrived_.wait(stop);
    if (!arrived) co_return fail(ErrorCode::cancelled, "the reader has left");
  }
  co_return std::exchange(queue_, {});
}

// ---- what engines print

OutputLogs::OutputLogs(async::Executor executor, async::Offload& offload, OutputFiles files,
                       Masker shown)
    : executor_(executor),
      offload_(offload),
      files_(std::move(files)),
      shown_(std::move(shown)),
      tasks_(executor),
      disk_free_(executor),
      followers_gone_(executor) {
  disk_free_.set();
}

void OutputLogs::line(const std::string& model, std::string_view text) {
  take(model, printable(text) + "\n");
}

void OutputLogs::begin(const std::string& model, std::string_view launch_line) {
  take(model, fmt::format("=== {} {}\n", timestamp(std::chrono::system_clock::now()),
                          printable(launch_line)));
}

void OutputLogs::take(const std::string& model, std::string text) {
  if (closed_) return;
  for (OutputFollower* follower : followers_) follower->take(model, text);
  if (unwritten_bytes_ + text.size() > kUnwrittenBytesMax) {
    ++dropped_lines_;
    return;
  }
  std::string& unwritten = unwritten_[model];
  if (dropped_lines_ > 0) unwritten += dropped_note(dropped_lines_, "the disk was too slow");
  dropped_lines_ = 0;
  unwritten_bytes_ += text.size();
  unwritten += text;
  if (std::exchange(writing_, true)) return;
  tasks_.spawn(write_out());
}

// ---- the disk

async::awaitable<bool> OutputLogs::take_disk(std::stop_token stop) {
  while (!disk_free_.is_set()) {
    const bool is_free = co_await disk_free_.wait(stop);
    if (!is_free) co_return false;
  }
  disk_free_.reset();
  co_return true;
}

void OutputLogs::free_disk() { disk_free_.set(); }

async::awaitable<void> OutputLogs::write_out() {
  while (!unwritten_.empty()) {
    const std::stop_token never;
    co_await take_disk(never);
    const Batch batch = std::exchange(unwritten_, {});
    unwritten_bytes_ = 0;
    const auto work = [this, &batch] {
      Status all;
      for (const auto& [model, text] : batch) {
        Status written = files_.append(model, text);
        if (!written) all = written;
      }
      return all;
    };
    const Status written = co_await offload_.run(work);
    free_disk();
    note(written);
  }
  writing_ = false;
}

void OutputLogs::note(const Status& written) {
  if (written && told_) log::info("the output of engines is kept again");
  if (!written && !told_)
    log::warn("the output of engines is not kept: {}", written.error().message);
  told_ = !written;
}

// ---- readers

async::awaitable<Result<std::string>> OutputLogs::read(std::optional<std::string> model,
                                                       std::size_t lines) {
  const auto work = [this, &model, lines]() -> Result<std::string> {
    if (model) return files_.last_lines(*model, lines);
    std::string all;
    for (const std::string& one : files_.models()) {
      Result<std::string> text = files_.last_lines(one, lines);
      if (!text) return text;
      if (!text->empty()) all += output_heading(one) + *text;
    }
    return all;
  };
  Result<std::string> text = co_await offload_.run(work);
  co_return text;
}

async::awaitable<Result<std::string>> OutputLogs::last_lines(std::optional<std::string> model,
                                                             std::size_t lines,
                                                             std::stop_token stop) {
  auto follower = co_await follow(std::move(model), lines, stop);
  if (!follower) co_return pass_on(follower);
  co_return std::move((*follower)->queue_);
}

async::awaitable<Result<std::unique_ptr<OutputFollower>>> OutputLogs::follow(
    std::optional<std::string> model, std::size_t lines, std::stop_token stop) {
  const bool taken = co_await take_disk(stop);
  if (!taken) co_return fail(ErrorCode::cancelled, "the reader has left");
  // In this turn what was said is on disk or unwritten, and what comes next goes to the follower.
  auto follower = std::make_unique<OutputFollower>(*this, model);
  for (const auto& [name, text] : unwritten_) follower->take(name, text);
  Result<std::string> before = co_await read(model, lines);
  free_disk();
  if (!before) co_return pass_on(before);
  follower->queue_.insert(0, *before);
  co_return follower;
}

std::string output_hint(const std::string& model) {
  const std::vector<std::string> words{"werk", "logs", model};
  return fmt::format("; `{}` shows what it printed", shell_line(words));
}

// ---- the end

async::awaitable<void> OutputLogs::end_followers(std::stop_token stop) {
  ended_ = true;
  for (OutputFollower* follower : followers_) {
    follower->ended_ = true;
    follower->arrived_.set();
  }
  while (!followers_.empty()) {
    followers_gone_.reset();
    const bool gone = co_await followers_gone_.wait(stop);
    if (!gone) co_return;
  }
}

async::awaitable<void> OutputLogs::close() {
  closed_ = true;
  co_await tasks_.join();
}

}  // namespace werk::engine
