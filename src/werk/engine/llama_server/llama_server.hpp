// llama-server as an engine: starts it as a child with a private socket and a key of its own, waits
// until it is ready and surely serves the wanted model with the wanted room, and hands it on as a
// Runtime. One LlamaServerEngine per mode; the app owns them and what Services refers to, and both
// outlive every runtime. A failed or stopped start leaves no process and no socket. Errors hold no
// path and no key: the log has the whole. Loop thread only.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "werk/async/offload.hpp"
#include "werk/engine/engine.hpp"
#include "werk/engine/llama_server/failure.hpp"
#include "werk/engine/llama_server/finder.hpp"
#include "werk/engine/llama_server/launch.hpp"
#include "werk/engine/output_logs.hpp"
#include "werk/http/client.hpp"
#include "werk/process/child.hpp"
#include "werk/process/socket_folder.hpp"

namespace werk::engine::llama_server {

struct Services {
  async::Executor executor;
  async::Clock& clock;
  async::Offload& offload;
  process::Children& children;
  process::SocketFolder& sockets;
  Finder& finder;
  OutputLogs* output = nullptr;  // keeps what children print; without it nothing is kept
};

// What the engine of a mode declares itself to be.
EngineInfo info_of(Mode mode);

struct LlamaServerSettings {
  LaunchSettings launch;
  std::vector<std::string> environment;  // our own, "NAME=value"; children get a scrubbed copy
  std::string home;                      // masked in what leaves the node
};

class LlamaServerEngine final : public Engine {
 public:
  LlamaServerEngine(Services services, LlamaServerSettings settings);

  const EngineInfo& info() const override { return info_; }
  // As plan_start().
  Result<StartPlan> plan(const model::Manifest& manifest,
                         const std::filesystem::path& folder) const override;
  // Fails with `model_unusable` (a file is missing or damaged, an unknown architecture),
  // `start_failed` (everything that a later try may overcome: no executable, no memory, an exit,
  // another model, less room than asked for), `draining`, `cancelled`. An exit during the start is
  // told in the turn in which it is seen.
  async::awaitable<Result<std::unique_ptr<Runtime>>> start(StartPlan plan, StartObserver& observer,
                                                           std::stop_token stop) override;

 private:
  struct Launched;

  async::awaitable<Result<Executable>> executable_for(const StartPlan& plan, std::stop_token stop);
  Result<std::unique_ptr<Launched>> launch(StartPlan plan, Executable executable);
  async::awaitable<Result<RuntimeFacts>> come_up(Launched& launched, std::stop_token race);
  async::awaitable<void> watch_activity(Launched& launched, StartObserver& observer,
                                        std::stop_token done);
  async::awaitable<Result<RuntimeFacts>> bring_up(Launched& launched, StartObserver& observer,
                                                  std::stop_token stop);
  Masker masker_for(const StartPlan& plan, const Executable* executable) const;
  Error exit_error(Launched& launched) const;

  Services services_;
  LlamaServerSettings settings_;
  EngineInfo info_;
  ExtraSizing extra_sizing_;
  bool said_sizing_ = false;
  http::Client client_;
};

}  // namespace werk::engine::llama_server
