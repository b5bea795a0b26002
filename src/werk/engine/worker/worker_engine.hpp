// WorkerEngine: one kind of resident worker as an engine. It starts a worker program in its
// interpreter, has it load the model and hands it on as a Runtime; or, where models are not kept,
// takes the one worker that the last runtime gave back. Owned by the app, outlives its runtimes and
// is shut down after them. Errors hold no path: the log has the whole. Loop thread only.
#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "werk/async/offload.hpp"
#include "werk/engine/engine.hpp"
#include "werk/engine/masker.hpp"
#include "werk/engine/output_logs.hpp"
#include "werk/engine/worker/interpreter.hpp"
#include "werk/engine/worker/kinds.hpp"
#include "werk/engine/worker/worker.hpp"

namespace werk::engine::worker {

struct WorkerServices {
  async::Executor executor;
  async::Clock& clock;
  async::Offload& offload;
  process::Children& children;
  OutputLogs* output = nullptr;  // keeps what children print; without it nothing is kept
};

// What becomes of a worker whose runtime is stopped.
enum class Keep : std::uint8_t { nothing, worker };

struct WorkerSettings {
  std::filesystem::path programs;  // where the worker programs lie
  InterpreterSettings interpreter;
  std::string device;  // empty: the engine's own choice
  std::string dtype;
  std::optional<std::uint32_t> threads;
  std::uint64_t context_tokens = 0;  // 0: the model's own
  async::Duration cancel_limit = std::chrono::seconds(5);
  Keep keep = Keep::nothing;
};

// What the engine of this kind declares itself to be.
EngineInfo info_of(const WorkerKind& kind);

// The environment of a worker: our own without keys and what would change it behind our back.
std::vector<std::string> worker_environment(std::vector<std::string> own, int descriptor,
                                            std::optional<std::uint32_t> threads);

class WorkerEngine final : public Engine {
 public:
  WorkerEngine(const WorkerKind& kind, WorkerServices services, WorkerSettings settings);
  ~WorkerEngine() override;

  const EngineInfo& info() const override { return info_; }
  Result<StartPlan> plan(const model::Manifest& manifest,
                         const std::filesystem::path& folder) const override;
  // Fails with `model_unusable`, `start_failed`, `draining`, `cancelled`.
  async::awaitable<Result<std::unique_ptr<Runtime>>> start(StartPlan plan, StartObserver& observer,
                                                           std::stop_token stop) override;
  async::awaitable<void> shut_down() override;
  // Whether an interpreter can be had; for `--backend` and doctor.
  async::awaitable<Result<Interpreter>> look(std::stop_token stop) {
    return interpreters_.find(std::move(stop));
  }

 private:
  async::awaitable<Result<std::unique_ptr<Worker>>> worker_for(const StartPlan& plan,
                                                               std::stop_token stop);
  Result<std::unique_ptr<Worker>> launch(const StartPlan& plan, const Interpreter& interpreter);
  async::awaitable<Result<RuntimeFacts>> load(Worker& worker, const StartPlan& plan,
                                              StartObserver& observer, std::stop_token stop);
  async::awaitable<void> end(std::unique_ptr<Worker> worker);
  Masker masker_for(const StartPlan& plan) const;
  Error explain(Error error, Worker& worker, const StartPlan& plan) const;

  const WorkerKind& kind_;
  WorkerServices services_;
  WorkerSettings settings_;
  EngineInfo info_;
  InterpreterFinder interpreters_;
  std::unique_ptr<Worker> parked_;
};

}  // namespace werk::engine::worker
