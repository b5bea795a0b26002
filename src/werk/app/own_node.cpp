#include "werk/app/own_node.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <optional>

#include "werk/app/node_client.hpp"
#include "werk/app/steps.hpp"
#include "werk/async/loop.hpp"
#include "werk/async/task_group.hpp"
#include "werk/base/text.hpp"
#include "werk/process/child.hpp"
#include "werk/process/node_lock.hpp"
#include "werk/process/program.hpp"
#include "werk/process/signals.hpp"

namespace werk::app {

using namespace std::chrono_literals;

namespace {

constexpr auto kLook = 20ms;       // between two looks whether the node serves
constexpr auto kStartedHalf = 5s;  // for a node that is stopped while it starts
constexpr std::string_view kErrorLevel = " error ";
constexpr std::string_view kVariable = "WERK_OWN_NODE";  // set for such a node alone

}  // namespace

struct OwnNode::State {
  State(std::filesystem::path home, std::vector<std::string> words, std::string log_name)
      : home_(std::move(home)),
        words_(std::move(words)),
        log_name_(std::move(log_name)),
        clock_(loop_.executor()),
        children_(loop_.executor(), clock_),
        tasks_(loop_.executor()) {}

  // Its address, once it serves.
  Result<std::string> start() {
    Status spawned = spawn();
    if (!spawned) return pass_on(spawned);
    const process::SignalWatch signals(loop_.executor(), [this](int) { stop_.request_stop(); });
    tasks_.spawn(await_serving());
    loop_.run_until([this] { return tasks_.running() == 0; });
    // A signal that came with the node's readiness counts too.
    loop_.poll();
    if (!problem_ && stop_.stop_requested())
      problem_ = Error{ErrorCode::cancelled, "stopped while the node started"};
    if (!problem_) return url_;
    stop(kStartedHalf);
    return fail(*problem_);
  }

  void stop(std::chrono::milliseconds limit) {
    if (!child_) return;
    tasks_.spawn(end(limit));
    loop_.run_until([this] { return tasks_.running() == 0; });
  }

 private:
  std::string log_path() const { return (home_ / "run" / log_name_).string(); }

  Status spawn() {
    std::error_code error;
    std::filesystem::create_directories(home_ / "run", error);
    const process::Descriptor log(
        ::open(log_path().c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC, 0600));
    if (!log) {
      return fail(ErrorCode::io,
                  fmt::format("cannot write {}: {}", log_path(), std::strerror(errno)));
    }
    process::Command command;
    command.program = std::filesystem::read_symlink("/proc/self/exe", error).string();
    command.arguments = words_;
    command.environment = process::with_variable(process::own_environment(), kVariable, "1");
    command.descriptors = {{log.get(), STDOUT_FILENO}, {log.get(), STDERR_FILENO}};
    auto child = children_.spawn(std::move(command));
    if (!child) return pass_on(child);
    child_ = std::move(*child);
    return {};
  }

  async::awaitable<void> await_serving() {
    while (true) {
      const auto info = process::NodeLock::running(home_.string());
      if (info && info->pid == child_->pid()) {
        url_ = reachable_here(info->address);
        co_return;
      }
      async::Deadline pause(clock_, kLook, stop_.get_token());
      const bool ended = co_await child_->exited().wait(pause.token());
      if (ended) {
        problem_ = Error{child_->status()->code == kHomeHeldStatus ? ErrorCode::conflict
                                                                   : ErrorCode::start_failed,
                         fmt::format("the node did not start ({}): {} (its log: {})",
                                     child_->status()->text(), last_of_log(), log_path())};
        co_return;
      }
      if (stop_.stop_requested()) {
        problem_ = Error{ErrorCode::cancelled, "stopped while the node started"};
        co_return;
      }
    }
  }

  async::awaitable<void> end(async::Duration limit) {
    const process::Grace grace{limit};
    co_await child_->stop(grace);
  }

  // What it said last, without the time and the level that a log line begins with.
  std::string last_of_log() const {
    std::ifstream file(log_path());
    std::string last;
    for (std::string line; std::getline(file, line);) {
      if (!trim(line).empty()) last = line;
    }
    const std::size_t level = last.find(kErrorLevel);
    if (level != std::string::npos) last.erase(0, level + kErrorLevel.size());
    return last.empty() ? "it said nothing" : printable(trim(last));
  }

  std::filesystem::path home_;
  std::vector<std::string> words_;
  std::string log_name_;
  async::Loop loop_;
  async::SteadyClock clock_;
  process::Children children_;
  async::TaskGroup tasks_;
  std::stop_source stop_;
  std::unique_ptr<process::Child> child_;
  std::string url_;
  std::optional<Error> problem_;
};

OwnNode::OwnNode(std::filesystem::path home, std::vector<std::string> words, std::string log_name)
    : state_(std::make_unique<State>(std::move(home), std::move(words), std::move(log_name))) {}

OwnNode::~OwnNode() = default;

Result<std::string> OwnNode::start() { return state_->start(); }

void OwnNode::stop(std::chrono::milliseconds limit) { state_->stop(limit); }

std::vector<std::string> serve_words(const CommandLine& line,
                                     const std::vector<std::string_view>& without) {
  std::vector<std::string> words = {"serve"};
  for (const GivenFlag& given : line.flags) {
    if (std::ranges::find(without, given.flag) != without.end()) continue;
    const auto option =
        std::ranges::find_if(options(), [&](const Option& one) { return one.flag == given.flag; });
    const bool bare = option != options().end() && option->shape == Shape::flag;
    words.push_back(bare ? given.flag : given.flag + "=" + given.value);
  }
  return words;
}

void note_idle_options(const CommandLine& line, const std::string& url) {
  for (const GivenFlag& given : line.flags) {
    if (given.flag == "--model" || given.flag == "--model-home") continue;
    fmt::print(stderr, "werk: a node serves this home already at {}; {} has no effect on it\n", url,
               given.flag);
  }
}

bool is_own_node() { return process::own_variable(kVariable).has_value(); }

}  // namespace werk::app
