// One node in the test's process, made anew for each .exchange file: the real server, gateway,
// router and runtime cache over a temporary home, one scripted engine, and a clock that only the
// test moves. Its owner awaits close() before it goes. Loop thread only.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "tests/api/exchange_file.hpp"
#include "tests/api/scripted_engine.hpp"
#include "tests/support/manual_clock.hpp"
#include "tests/support/scripted_server.hpp"
#include "tests/support/temporary_folder.hpp"
#include "werk/gateway/gateway.hpp"
#include "werk/http/server.hpp"

namespace werk::test {

class ApiNode {
 public:
  ApiNode(async::Executor executor, async::Offload& offload, const NodeLines& lines,
          std::vector<ModelLine> models);
  ApiNode(const ApiNode&) = delete;
  ApiNode& operator=(const ApiNode&) = delete;

  async::awaitable<void> close();

  std::string home() const { return folder_.path().string(); }
  std::string socket() const { return folder_ / "node.sock"; }
  ManualClock& clock() { return clock_; }
  ScriptedServer& engine_server() { return engine_server_; }
  ScriptedEngine& engine() { return engine_; }
  engine::OutputLogs& output() { return output_; }
  gateway::Gateway& gateway() { return *gateway_; }
  runtime::RuntimeCache& cache() { return cache_; }
  http::Server& server() { return *server_; }
  telemetry::Recorder& recorder() { return recorder_; }
  // Calls that wait for a place, a load or a slot, and those who wait for events.
  std::size_t waiting() { return cache_.waiting() + recorder_.events().followers(); }

 private:
  TemporaryFolder folder_;
  std::vector<ModelLine> model_lines_;
  ManualClock clock_;
  ScriptedServer engine_server_;
  ScriptedEngine engine_;
  model::Store store_;
  gateway::InstalledModels models_;
  telemetry::Recorder recorder_;
  async::LoopLag loop_lag_;
  routing::Router router_;
  runtime::RuntimeCache cache_;
  http::Client client_;
  engine::OutputLogs output_;
  std::unique_ptr<gateway::Gateway> gateway_;
  std::unique_ptr<http::Server> server_;
};

}  // namespace werk::test
