// StandIn: a server of somebody else's that serves installed models, for the engine that would run
// here: calls for a model of ours go to the one that it has under the same name, to the one that
// the settings name, or to the only one that it has. It is a RemoteEngine behind another name, so
// nothing of the server is started or stopped. Owned by the app, loop thread only; shut_down()
// after the last of its runtimes is gone.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "werk/engine/remote/remote_engine.hpp"

namespace werk::engine::remote {

struct StandInSettings {
  std::string engine;                // what it stands for: "vllm"
  std::vector<std::string> formats;  // of installed models, that it takes calls for
  std::optional<std::string> model;  // which of the server's models; none: see above
  std::string model_setting;         // where that is said, for errors: "WERK_VLLM_MODEL"
};

// The server's model for an installed one. Fails with `model_not_found` and what it lists.
Result<PeerModel> choose_model(const StandInSettings& settings, const std::string& place,
                               const model::Manifest& manifest,
                               const std::vector<PeerModel>& models);

class StandIn final : public Engine {
 public:
  StandIn(async::Executor executor, async::Clock& clock, StandInSettings settings,
          RemoteSettings remote);

  const EngineInfo& info() const override { return info_; }
  const RemoteSettings& remote() const { return remote_.settings(); }
  Result<StartPlan> plan(const model::Manifest& manifest,
                         const std::filesystem::path& folder) const override;
  async::awaitable<Result<std::unique_ptr<Runtime>>> start(StartPlan plan, StartObserver& observer,
                                                           std::stop_token stop) override;
  async::awaitable<void> shut_down() override { co_await remote_.shut_down(); }
  // Whether the server answers, and with how many models; for doctor.
  async::awaitable<Result<std::size_t>> look(std::stop_token stop);

 private:
  EngineInfo info_;
  StandInSettings settings_;
  RemoteEngine remote_;
};

}  // namespace werk::engine::remote
