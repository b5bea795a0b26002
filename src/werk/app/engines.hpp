// The engines of this build: the one list. A new engine is a folder below engine/ and one line
// here. Owned by the node; what the engines refer to must outlive them.
#pragma once

#include <filesystem>
#include <memory>
#include <stop_token>
#include <vector>

#include "werk/app/settings.hpp"
#include "werk/async/offload.hpp"
#include "werk/engine/engine.hpp"
#include "werk/engine/llama_server/finder.hpp"
#include "werk/process/socket_folder.hpp"

namespace werk::app {

struct EngineParts {
  async::Executor executor;
  async::Clock& clock;
  async::Offload& offload;
  process::Children& children;
  process::SocketFolder& sockets;
};

class Engines {
 public:
  Engines(EngineParts parts, const Settings& settings, std::filesystem::path home);

  // Finds out what this machine has and makes the engines that --backend asks for, in order of
  // preference. Fails when a named executable is missing or nothing can serve.
  async::awaitable<Status> prepare(std::stop_token stop);
  std::vector<engine::Engine*> in_order() const;

 private:
  void add_llama(engine::llama_server::Mode mode);

  EngineParts parts_;
  const Settings& settings_;
  std::filesystem::path home_;
  engine::llama_server::Finder finder_;
  std::vector<std::unique_ptr<engine::Engine>> engines_;
};

}  // namespace werk::app
