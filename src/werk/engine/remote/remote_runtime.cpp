#include "werk/engine/remote/remote_runtime.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "werk/base/log.hpp"
#include "werk/base/text.hpp"
#include "werk/engine/known_servers.hpp"
#include "werk/engine/remote/breaker.hpp"

namespace werk::engine::remote {
namespace {

using namespace std::chrono_literals;

constexpr auto kProbeEvery = 30s;
constexpr auto kProbeSpread = 12s;  // so that nodes don't ask all at once
constexpr auto kNextLook = 2s;      // at a peer in doubt

// From 24 to 36 s, the same for a name each time.
async::Duration probe_pause(const std::string& name) {
  const auto spread = std::chrono::milliseconds(kProbeSpread);
  const auto within = std::hash<std::string>()(name) % static_cast<std::size_t>(spread.count());
  return kProbeEvery - spread / 2 + std::chrono::milliseconds(within);
}

}  // namespace

struct RemoteRuntime::Life {
  Life(Peer& remote, RemoteFacts known, async::Clock& time, const async::Executor& loop)
      : peer(remote), facts(std::move(known)), clock(time), executor(loop), exited(loop) {}

  void end(std::string why) {
    if (exited.is_set()) return;
    reason = std::move(why);
    stop.request_stop();
    exited.set();
  }
  void open_if_due(const Error& last) {
    if (!breaker.is_open()) return;
    end(fmt::format("{} failed {} times in a row, the last time so: {}", peer.text(),
                    Breaker::kFailuresMax, last.message));
  }
  bool lists_it(const std::vector<PeerModel>& models) const {
    return std::ranges::find(models, facts.model, &PeerModel::id) != models.end();
  }
  // A peer without a list can't lose a model from it.
  static bool has_no_list(const Error& error) { return error.code == ErrorCode::not_found; }

  Peer& peer;
  RemoteFacts facts;
  async::Clock& clock;
  async::Executor executor;
  async::Event exited;
  std::stop_source stop;
  std::string reason;
  Breaker breaker;
};

RemoteRuntime::RemoteRuntime(Peer& peer, RemoteFacts facts, async::Clock& clock,
                             async::TaskGroup& tasks, async::Executor executor)
    : life_(std::make_shared<Life>(peer, std::move(facts), clock, executor)) {
  tasks.spawn(watch(life_));
}

RemoteRuntime::~RemoteRuntime() { life_->stop.request_stop(); }

const RuntimeFacts& RemoteRuntime::facts() const { return life_->facts.runtime; }

std::optional<HttpTarget> RemoteRuntime::passthrough(Dialect dialect) const {
  const RemoteFacts& facts = life_->facts;
  const std::string& prefix = life_->peer.settings().url.prefix;
  HttpTarget target = life_->peer.target();
  target.model_name = facts.model;
  if (dialect == Dialect::anthropic_messages) {
    if (!facts.is_werk) return std::nullopt;
    target.path = prefix + "/messages";
    target.count_path = prefix + "/messages/count_tokens";
    return target;
  }
  target.path = prefix + "/chat/completions";
  target.profile.reports_progress = facts.is_werk;
  if (facts.counts_chat) {
    target.count_path = prefix + std::string(kLlamaServerCount.path);
    target.count_member = kLlamaServerCount.member;
    target.profile = llama_server_profile();
  }
  if (facts.tokenizes) {
    target.count_path = life_->peer.settings().url.beside(kVllmCount.path);
    target.count_member = kVllmCount.member;
  }
  return target;
}

async::Event& RemoteRuntime::exited() { return life_->exited; }

std::string RemoteRuntime::exit_reason() const { return life_->reason; }

void RemoteRuntime::call_answered() { life_->breaker.call_answered(); }

void RemoteRuntime::call_failed(const Error& fault) {
  life_->breaker.call_failed();
  life_->open_if_due(fault);
}

async::awaitable<Result<std::size_t>> RemoteRuntime::busy_slots(std::stop_token) { co_return 0; }

async::awaitable<void> RemoteRuntime::stop(async::Duration) {
  life_->end("let go");
  co_return;
}

async::awaitable<void> RemoteRuntime::watch(std::shared_ptr<Life> life) {
  const std::stop_token stop = life->stop.get_token();
  const async::Duration pause = probe_pause(life->peer.settings().name);
  while (true) {
    const async::Duration wait = life->breaker.probes_fail() ? kNextLook : pause;
    const bool slept = co_await async::sleep_for(life->clock, life->executor, wait, stop);
    if (!slept) co_return;
    const Result<std::vector<PeerModel>> models = co_await life->peer.models(stop);
    if (stop.stop_requested()) co_return;
    if (!models && !Life::has_no_list(models.error())) {
      log::debug("{}", models.error().message);
      life->breaker.probe_failed();
      life->open_if_due(models.error());
      continue;
    }
    life->breaker.probe_answered();
    if (models && !life->lists_it(*models)) {
      life->end(
          fmt::format("{} no longer lists {}", life->peer.text(), printable(life->facts.model)));
      co_return;
    }
    if (!life->facts.is_werk) continue;
    const auto slots = co_await life->peer.slots_of(life->facts.model, stop);
    if (slots) life->facts.runtime.native_slots = *slots;
  }
}

}  // namespace werk::engine::remote
