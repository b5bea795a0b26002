// vLLM as an engine that Werk owns: starts `vllm serve` as a child with a private socket and a key
// of its own, waits until it is ready and surely serves the wanted model, and hands it on as a
// Runtime. One process group for each launch line, ended as a whole. The app owns the engine and
// what Services refers to, and both outlive every runtime. A failed or stopped start leaves no
// process and no socket. Errors hold no path and no key: the log has the whole. Loop thread only.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "werk/async/offload.hpp"
#include "werk/engine/engine.hpp"
#include "werk/engine/masker.hpp"
#include "werk/engine/output_logs.hpp"
#include "werk/engine/vllm/finder.hpp"
#include "werk/engine/vllm/options.hpp"
#include "werk/engine/vllm/runtime.hpp"
#include "werk/http/client.hpp"
#include "werk/process/socket_folder.hpp"

namespace werk::engine::vllm {

struct Services {
  async::Executor executor;
  async::Clock& clock;
  async::Offload& offload;
  process::Children& children;
  process::SocketFolder& sockets;
  OutputLogs* output = nullptr;  // keeps what children print; without it nothing is kept
};

struct VllmSettings {
  VllmOptions options;
  std::vector<std::string> environment;  // our own, "NAME=value"; children get a scrubbed copy
  std::string home;                      // masked in what leaves the node
};

// What it declares, whatever the machine has.
EngineInfo info_of();

class VllmEngine final : public Engine {
 public:
  VllmEngine(Services services, VllmSettings settings);

  const EngineInfo& info() const override { return info_; }
  // As plan_start().
  Result<StartPlan> plan(const model::Manifest& manifest,
                         const std::filesystem::path& folder) const override;
  // Fails with `model_unusable`, `start_failed` (an exit, another model, the health time-out),
  // `draining`, `cancelled`. While the child lives each second counts as progress: vLLM is silent
  // for minutes when it compiles, and its start has a limit of its own.
  async::awaitable<Result<std::unique_ptr<Runtime>>> start(StartPlan plan, StartObserver& observer,
                                                           std::stop_token stop) override;
  // Whether there is a vLLM; for `--backend` and doctor.
  async::awaitable<Result<Executable>> look(std::stop_token stop) {
    return finder_.find(std::move(stop));
  }

 private:
  struct Launched;

  async::awaitable<Result<Executable>> executable_for(const StartPlan& plan, std::stop_token stop);
  Result<std::unique_ptr<Launched>> launch(StartPlan plan, Executable executable);
  async::awaitable<Result<RuntimeFacts>> come_up(Launched& launched, std::stop_token race);
  async::awaitable<void> tell_progress(StartObserver& observer, std::stop_token done);
  async::awaitable<Result<RuntimeFacts>> bring_up(Launched& launched, StartObserver& observer,
                                                  std::stop_token stop);
  Masker masker_for(const StartPlan& plan) const;
  Error exit_error(Launched& launched) const;

  Services services_;
  VllmSettings settings_;
  EngineInfo info_;
  Finder finder_;
  http::Client client_;
};

}  // namespace werk::engine::vllm
