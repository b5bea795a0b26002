// One configured remote as an Engine: a server of somebody else's that speaks OpenAI's dialect, or
// another Werk. A start asks whether the model is there and changes nothing; a stop only lets go.
// What the peer has is asked with look(). Owned by the app, loop thread only; shut_down() after the
// last of its runtimes is gone.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "werk/async/task_group.hpp"
#include "werk/engine/engine.hpp"
#include "werk/engine/remote/listing.hpp"
#include "werk/engine/remote/peer.hpp"

namespace werk::engine::remote {

// What the engine of such a remote declares.
EngineInfo info_of(const RemoteSettings& settings);

class RemoteEngine final : public Engine {
 public:
  RemoteEngine(async::Executor executor, async::Clock& clock, RemoteSettings settings);

  const EngineInfo& info() const override { return info_; }
  const RemoteSettings& settings() const { return peer_.settings(); }
  Result<StartPlan> plan(const model::Manifest& manifest,
                         const std::filesystem::path& folder) const override;
  async::awaitable<Result<std::unique_ptr<Runtime>>> start(StartPlan plan, StartObserver& observer,
                                                           std::stop_token stop) override;
  async::awaitable<void> shut_down() override;

  // Asks the peer for its models; those of its own remotes are left out, unless they were named in
  // the settings. Models named there are listed whatever it answers.
  async::awaitable<Status> look(std::stop_token stop);
  // As of the last look.
  RemoteListing listing() const { return {settings().name, models_}; }
  // Whether what it serves is for it to tell.
  bool discovers() const { return settings().models.empty(); }

 private:
  async::awaitable<Result<PeerModel>> find(std::string id, std::stop_token stop);

  EngineInfo info_;
  Peer peer_;
  std::vector<PeerModel> models_;
  async::Executor executor_;
  async::Clock& clock_;
  async::TaskGroup tasks_;  // the probes of its runtimes
};

}  // namespace werk::engine::remote
