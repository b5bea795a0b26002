#include "werk/app/remote_models.hpp"

#include "werk/base/log.hpp"

namespace werk::app {

using namespace std::chrono_literals;

namespace remote = engine::remote;

namespace {

constexpr auto kLookEvery = 5min;
constexpr auto kLookAgain = 30s;    // after one that failed
constexpr auto kAtMostEvery = 2s;  // however many names nobody has are asked for

}  // namespace

RemoteModels::RemoteModels(async::Executor executor, async::Clock& clock,
                           const std::vector<remote::RemoteEngine*>& engines)
    : executor_(executor), clock_(clock), tasks_(executor) {
  for (remote::RemoteEngine* engine : engines) {
    Remote& one = remotes_.emplace_back(*engine, executor_);
    one.looked.set();
    one.models = engine->listing().models;
  }
}

async::awaitable<void> RemoteModels::begin(std::stop_token stop) {
  const auto stop_looking = [this] { stop_.request_stop(); };
  const std::stop_callback on_stop(stop, stop_looking);
  co_await look_at_all();
  for (Remote& one : remotes_) tasks_.spawn(keep_looking(one));
}

async::awaitable<void> RemoteModels::end() {
  stop_.request_stop();
  co_await tasks_.join();
}

std::vector<model::InstalledModel> RemoteModels::beside(
    const std::vector<model::InstalledModel>& installed) const {
  std::vector<remote::RemoteListing> listings;
  for (const Remote& one : remotes_) listings.push_back({one.engine.settings().name, one.models});
  return remote::list_remotes(listings, installed);
}

async::awaitable<void> RemoteModels::look_for(std::string) { co_await look_at_all(); }

async::awaitable<void> RemoteModels::look_at_all() {
  async::TaskGroup looks(executor_);
  for (Remote& one : remotes_) {
    const bool lately = one.last && clock_.now() - *one.last < kAtMostEvery;
    if (!lately) looks.spawn(look(one));
  }
  co_await looks.join();
}

async::awaitable<void> RemoteModels::keep_looking(Remote& remote) {
  while (true) {
    const async::Duration pause = remote.problem.empty() ? async::Duration(kLookEvery) : kLookAgain;
    const bool slept = co_await async::sleep_for(clock_, executor_, pause, stop_.get_token());
    if (!slept) co_return;
    co_await look(remote);
  }
}

async::awaitable<void> RemoteModels::look(Remote& remote) {
  if (!remote.looked.is_set()) {
    co_await remote.looked.wait();
    co_return;
  }
  remote.looked.reset();
  const Status looked = co_await remote.engine.look(stop_.get_token());
  remote.last = clock_.now();
  note(remote, looked);
  remote.looked.set();
}

void RemoteModels::note(Remote& remote, const Status& looked) {
  const std::string& name = remote.engine.settings().name;
  const std::string problem = looked ? std::string() : looked.error().message;
  const bool is_news = problem != remote.problem || remote.models.empty();
  if (!looked && is_news && looked.error().code != ErrorCode::cancelled) {
    log::warn("{}; its models {}", problem,
              remote.engine.discovers() ? "are listed once it answers"
                                        : "are listed, and refused until it answers");
  }
  remote.problem = problem;
  std::vector<remote::PeerModel> models = remote.engine.listing().models;
  if (models == remote.models) return;
  remote.models = std::move(models);
  ++version_;
  log::info("remote {} lists {} model(s)", name, remote.models.size());
}

}  // namespace werk::app
