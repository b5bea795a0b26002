// WorkerNode: the real node over fake resident workers (tests/workers/fake_worker.py) in the place
// of ONNX GenAI's or of Transformers', with models that are folders. What the workers do is seen
// and steered through EngineControl, as for fake llama-servers. Owned by one test; blocking,
// watchdogs throw.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "tests/e2e/test_node.hpp"

namespace werk::test {

// Which engine the fakes stand for.
struct WorkerEngine {
  std::string name = "onnx-genai";
  std::string variables = "WERK_ONNX_GENAI";  // what its variables begin with
};

class WorkerNode {
 public:
  struct Settings {
    WorkerEngine stands_for = {};
    std::vector<std::string> models = {"a"};
    boost::json::object worker = {};          // what the fakes read at their start
    std::vector<std::string> arguments = {};  // of `werk serve`
    std::vector<std::string> environment = {};
  };
  explicit WorkerNode(Settings settings);

  TestNode& node() { return *node_; }
  EngineControl& workers() { return node_->engines(); }
  HttpCall chat(std::string_view model, std::string_view more = {}) {
    return node_->chat(model, more);
  }
  // The next generation that a worker has begun and no test has taken yet.
  EngineEvent generating() { return workers().expect("generating"); }
  void finish(const EngineEvent& generation) {
    workers().finish(generation.engine, generation.request());
  }

 private:
  TemporaryFolder folder_;
  std::unique_ptr<TestNode> node_;
};

}  // namespace werk::test
