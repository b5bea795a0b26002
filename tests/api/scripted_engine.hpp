// An engine whose runtimes send every call to one ScriptedServer in the test's loop. It starts at
// once, or fails as the model's line says, and dies when the test says so. Owned by an ApiNode,
// loop thread only.
#pragma once

#include <string>
#include <vector>

#include "tests/api/exchange_file.hpp"
#include "werk/engine/engine.hpp"

namespace werk::test {

class ScriptedEngine final : public engine::Engine {
 public:
  // `socket` is where the server listens; `models` say how each behaves.
  ScriptedEngine(async::Executor executor, std::string socket, const std::vector<ModelLine>& models,
                 std::size_t slots);

  const engine::EngineInfo& info() const override { return info_; }
  Result<engine::StartPlan> plan(const model::Manifest& manifest,
                                 const std::filesystem::path& folder) const override;
  async::awaitable<Result<std::unique_ptr<engine::Runtime>>> start(engine::StartPlan plan,
                                                                   engine::StartObserver& observer,
                                                                   std::stop_token stop) override;
  // Every runtime that lives ends now.
  void die();

 private:
  class LiveRuntime;

  const ModelLine& line_of(const std::string& id) const;

  async::Executor executor_;
  std::string socket_;
  const std::vector<ModelLine>& models_;
  std::size_t slots_;
  engine::EngineInfo info_;
  std::vector<LiveRuntime*> live_;
};

}  // namespace werk::test
