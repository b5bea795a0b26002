// An engine whose runtimes send every call to one ScriptedServer in the test's loop. It starts at
// once or after some time of the node's clock, or fails as the model's line says, and dies when the
// test says so. Owned by an ApiNode,
// loop thread only.
#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "tests/api/exchange_file.hpp"
#include "werk/engine/engine.hpp"

namespace werk::test {

class ScriptedEngine final : public engine::Engine {
 public:
  // `socket` is where the server listens; `models` say how each behaves.
  ScriptedEngine(async::Executor executor, async::Clock& clock, std::string socket,
                 const std::vector<ModelLine>& models, std::size_t slots);

  const engine::EngineInfo& info() const override { return info_; }
  Result<engine::StartPlan> plan(const model::Manifest& manifest,
                                 const std::filesystem::path& folder) const override;
  async::awaitable<Result<std::unique_ptr<engine::Runtime>>> start(engine::StartPlan plan,
                                                                   engine::StartObserver& observer,
                                                                   std::stop_token stop) override;
  // A start is under way that only time brings to its end.
  bool starting() const { return starting_ > 0; }
  // Every runtime that lives ends now.
  void die();

 private:
  class LiveRuntime;

  const ModelLine& line_of(const std::string& id) const;

  async::Executor executor_;
  async::Clock& clock_;
  std::string socket_;
  const std::vector<ModelLine>& models_;
  std::size_t slots_;
  engine::EngineInfo info_;
  std::vector<LiveRuntime*> live_;
  std::size_t starting_ = 0;
};

// A place in the engine's script where the node's clock moves before more is said.
struct Pause {
  explicit Pause(const async::Executor& executor) : reached(executor), over(executor) {}
  std::chrono::seconds length{0};
  async::Event reached;
  async::Event over;
};

}  // namespace werk::test
