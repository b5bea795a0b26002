// The engines of this build: the one list. A new engine is a folder below engine/ and one line
// here. A model whose settings differ from the node's has engines of its own. Owned by the node;
// what the engines refer to must outlive them.
#pragma once

#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <stop_token>
#include <vector>

#include "werk/app/settings.hpp"
#include "werk/async/offload.hpp"
#include "werk/engine/engine.hpp"
#include "werk/engine/llama_server/finder.hpp"
#include "werk/engine/llama_server/launch.hpp"
#include "werk/engine/output_logs.hpp"
#include "werk/engine/remote/remote_engine.hpp"
#include "werk/engine/remote/stand_in.hpp"
#include "werk/engine/vllm/vllm.hpp"
#include "werk/engine/worker/worker_engine.hpp"
#include "werk/process/socket_folder.hpp"
#include "werk/routing/router.hpp"

namespace werk::app {

struct EngineParts {
  async::Executor executor;
  async::Clock& clock;
  async::Offload& offload;
  process::Children& children;
  process::SocketFolder& sockets;
  engine::OutputLogs* output = nullptr;  // none where nothing is started
};

// 0: unknown.
std::uint64_t machine_memory_bytes();
// What each engine on the processor gets of `cores`. Those whose threads spin while they wait get a
// part, so that as many as may be active at once don't wait for one another's threads; those whose
// threads yield get all, unless the settings say how many may be active.
engine::llama_server::Threads threads_each(const Settings& settings, std::size_t cores);

// This process's, without the keys of remotes: for children.
std::vector<std::string> environment_without_keys(const Settings& settings);

// Where the node looks for a llama-server.
engine::llama_server::FinderSettings llama_finder_settings(const Settings& settings,
                                                           const std::filesystem::path& home);

class Engines {
 public:
  Engines(EngineParts parts, const Settings& settings, std::filesystem::path home);

  // Finds out what this machine has and makes the engines that --backend asks for, in order of
  // preference, and those of single models. Fails when a named executable is missing or nothing can
  // serve; an engine of a single model that can't be had is missing for it alone.
  async::awaitable<Status> prepare(std::stop_token stop);
  std::vector<engine::Engine*> in_order() const;
  // What the node's own engines should hold but can't.
  const std::vector<routing::Rejected>& missing() const { return node_missing_; }
  // By model id.
  std::map<std::string, routing::Binding> of_models() const;

  // What a route's plan comes to on this machine.
  struct LaunchLine {
    std::string program;
    std::string version;
    std::vector<std::string> words;  // without socket and secret
  };
  async::awaitable<Result<LaunchLine>> launch_line(const routing::Route& route,
                                                   std::stop_token stop);
  // The engines that this one was chosen before, and why: for people, not for routing.
  async::awaitable<std::vector<routing::Rejected>> others(const engine::Engine& engine,
                                                          std::stop_token stop);
  // Null where it is no llama-server.
  const engine::llama_server::LaunchSettings* launch_of(const engine::Engine& engine) const;
  // The node's engines that run in workers.
  std::vector<engine::worker::WorkerEngine*> workers() const;
  std::vector<engine::remote::RemoteEngine*> remotes() const;
  // What the remotes list beside these models: asks each once.
  async::awaitable<std::vector<model::InstalledModel>> models_of_remotes(
      std::vector<model::InstalledModel> installed, std::stop_token stop);
  // The node's vLLM, if it has one, and why it has none although one was named; null and empty.
  engine::vllm::VllmEngine* vllm() const;
  const std::string& vllm_problem() const { return vllm_problem_; }
  // Says where a wish for prefix caching (--persistence) has no effect.
  void tell_persistence() const;
  // Ends what they keep beyond their runtimes; after the last of those is gone.
  async::awaitable<void> shut_down();

 private:
  // A llama-server, a worker, a remote or a vLLM.
  struct Made {
    std::string model;  // whose it is; empty: the node's
    std::optional<engine::llama_server::LaunchSettings> launch;
    engine::llama_server::Finder* finder = nullptr;
    engine::worker::WorkerEngine* worker = nullptr;
    std::unique_ptr<engine::Engine> engine;
    engine::remote::RemoteEngine* remote = nullptr;
    engine::vllm::VllmEngine* vllm = nullptr;
    engine::remote::StandIn* stand_in = nullptr;
  };

  // Fails where a remote's key isn't there.
  Status add_remotes();
  async::awaitable<Status> do_without_llama(Error no_llama, std::stop_token stop);
  async::awaitable<void> prepare_own(const ModelSettings& model, std::stop_token stop);
  void add_llama(std::string model, engine::llama_server::LaunchSettings launch,
                 engine::llama_server::Finder& finder);
  engine::worker::WorkerEngine& add_worker(std::string model,
                                           const engine::worker::WorkerKind& kind,
                                           const engine::llama_server::LlamaServerOptions& options);
  void add_workers(const std::string& model,
                   const engine::llama_server::LlamaServerOptions& options);
  // Whether vLLM is somebody else's, and its address whole.
  bool vllm_is_remote() const;
  Status check_vllm_address() const;
  engine::remote::RemoteSettings vllm_remote() const;
  // For models of these formats, in the place of a vLLM of our own.
  void add_vllm_stand_in(std::string model, std::vector<std::string> formats);
  engine::vllm::VllmEngine& add_vllm(std::string model);
  // Where there is one; never fails, since another engine may serve.
  async::awaitable<void> add_vllm_if_there(std::string model, std::stop_token stop);
  static async::awaitable<Result<LaunchLine>> vllm_line(engine::vllm::VllmEngine& vllm,
                                                        const routing::Route& route,
                                                        std::stop_token stop);
  const Made& made(const engine::Engine& engine) const;
  // Fit for callers: without the paths of the home and of these.
  std::string without_paths(const std::string& message,
                            const engine::llama_server::NamedExecutables& named) const;

  EngineParts parts_;
  const Settings& settings_;
  std::filesystem::path home_;
  // Of each engine on the processor that has no number of its own.
  engine::llama_server::Threads threads_;
  engine::llama_server::Finder finder_;
  std::vector<std::unique_ptr<engine::llama_server::Finder>> own_finders_;
  std::vector<Made> engines_;
  std::map<std::string, std::vector<routing::Rejected>> missing_;  // by model id
  std::vector<routing::Rejected> node_missing_;
  std::string vllm_problem_;
};

}  // namespace werk::app
