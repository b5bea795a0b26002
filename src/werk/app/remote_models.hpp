// RemoteModels: the models of all remotes as the gateway lists them. Each remote is asked for its
// list at the start, every few minutes, sooner while it doesn't answer, and when somebody asks for
// a name that nobody has; what it said last stands until it says something else. Owned by the
// node, loop thread only; begin() once, end() before it goes.
#pragma once

#include <list>
#include <optional>
#include <string>
#include <vector>

#include "werk/async/clock.hpp"
#include "werk/async/event.hpp"
#include "werk/async/task_group.hpp"
#include "werk/engine/remote/remote_engine.hpp"
#include "werk/gateway/model_source.hpp"

namespace werk::app {

class RemoteModels final : public gateway::ModelSource {
 public:
  // The engines outlive it.
  RemoteModels(async::Executor executor, async::Clock& clock,
               const std::vector<engine::remote::RemoteEngine*>& engines);

  // Returns when each has answered once or failed to, which takes seconds at most; goes on looking.
  async::awaitable<void> begin(std::stop_token stop);
  async::awaitable<void> end();

  std::uint64_t version() const override { return version_; }
  std::vector<model::InstalledModel> beside(
      const std::vector<model::InstalledModel>& installed) const override;
  async::awaitable<void> look_for(std::string name) override;

 private:
  struct Remote {
    Remote(engine::remote::RemoteEngine& remote_engine, async::Executor executor)
        : engine(remote_engine), looked(std::move(executor)) {}
    engine::remote::RemoteEngine& engine;
    async::Event looked;  // set unless a look is under way
    std::optional<async::TimePoint> last;
    std::string problem;  // of the last look; empty: it answered
    std::vector<engine::remote::PeerModel> models;
  };

  async::awaitable<void> look(Remote& remote);
  async::awaitable<void> keep_looking(Remote& remote);
  async::awaitable<void> look_at_all();
  void note(Remote& remote, const Status& looked);

  async::Executor executor_;
  async::Clock& clock_;
  std::list<Remote> remotes_;
  std::uint64_t version_ = 1;
  std::stop_source stop_;
  async::TaskGroup tasks_;
};

}  // namespace werk::app
