#include "werk/app/engine_kinds.hpp"

#include "werk/engine/llama_server/llama_server.hpp"
#include "werk/engine/remote/remote_engine.hpp"
#include "werk/engine/vllm/vllm.hpp"
#include "werk/engine/worker/worker_engine.hpp"

namespace werk::app {

std::vector<engine::EngineInfo> engine_kinds() {
  namespace llama = engine::llama_server;
  namespace worker = engine::worker;
  std::vector<engine::EngineInfo> kinds;
  for (const llama::Mode mode : llama::kModes) kinds.push_back(llama::info_of(mode));
  kinds.push_back(engine::vllm::info_of());
  kinds.push_back(worker::info_of(worker::kOnnxGenai));
  kinds.push_back(worker::info_of(worker::kTransformers));
  engine::remote::RemoteSettings remote;
  remote.name = "NAME";
  kinds.push_back(engine::remote::info_of(remote));
  return kinds;
}

}  // namespace werk::app
