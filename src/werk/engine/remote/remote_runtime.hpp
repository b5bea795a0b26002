// One model of a remote, as a Runtime that owns nothing: calls go to the peer, stop() lets go of
// it. What calls and a slow probe learn of the peer goes through a breaker; once that opens, or
// the peer no longer has the model, the runtime counts as exited, so that the cache's next start,
// a probe, is the trial whether it is back. Made by RemoteEngine, loop thread only.
#pragma once

#include <memory>
#include <string>

#include "werk/async/task_group.hpp"
#include "werk/engine/engine.hpp"
#include "werk/engine/remote/peer.hpp"

namespace werk::engine::remote {

struct RemoteFacts {
  std::string model;  // as the peer calls it
  RuntimeFacts runtime;
  bool is_werk = false;
  bool counts_chat = false;  // llama-server's way of counting a chat's tokens
  bool tokenizes = false;    // vLLM's
};

class RemoteRuntime final : public Runtime {
 public:
  // Peer, clock and tasks outlive it; the tasks are joined after it.
  RemoteRuntime(Peer& peer, RemoteFacts facts, async::Clock& clock, async::TaskGroup& tasks,
                async::Executor executor);
  ~RemoteRuntime() override;

  const RuntimeFacts& facts() const override;
  std::optional<HttpTarget> passthrough(Dialect dialect) const override;
  async::Event& exited() override;
  std::string exit_reason() const override;
  void call_answered() override;
  void call_failed(const Error& fault) override;
  // What its calls hold there can't be seen: none is believed held.
  async::awaitable<Result<std::size_t>> busy_slots(std::stop_token stop) override;
  async::awaitable<void> stop(async::Duration grace) override;

 private:
  struct Life;
  static async::awaitable<void> watch(std::shared_ptr<Life> life);

  // Shared with the probe under way, which may end after the runtime.
  std::shared_ptr<Life> life_;
};

}  // namespace werk::engine::remote
