#include "tests/e2e/worker_node.hpp"

#include <fstream>
#include <stdexcept>

namespace werk::test {
namespace {

namespace fs = std::filesystem;

// In the place of an interpreter: it tells a version when it is asked for one, and is the worker.
void write_interpreter(const fs::path& path) {
  std::ofstream(path) << "#!/bin/sh\n[ \"$1\" = -I ] && { echo 1.0; exit 0; }\n"
                      << "exec python3 '" << WERK_FAKE_WORKER << "'\n";
  fs::permissions(path, fs::perms::owner_all);
}

// Models differ in their weights, so that each has an identity of its own.
void write_model(const fs::path& folder, const std::string& name, const WorkerEngine& engine) {
  fs::create_directories(folder);
  std::ofstream(folder / "tokenizer.json") << "{}";
  std::ofstream(folder / "tokenizer_config.json")
      << R"({"chat_template":"{% for m in messages %}{{ m.role }}{{ tools }}{% endfor %}"})";
  if (engine.name == "onnx-genai") {
    std::ofstream(folder / "genai_config.json")
        << R"({"model":{"type":"llama","context_length":4096,)"
           R"("decoder":{"filename":"model.onnx"}}})";
    std::ofstream(folder / "model.onnx") << "weights of " << name;
    return;
  }
  std::ofstream(folder / "config.json")
      << R"({"model_type":"llama","max_position_embeddings":4096})";
  // A table of no tensors; what follows it are the weights.
  std::ofstream(folder / "model.safetensors")
      << std::string("\2\0\0\0\0\0\0\0{}", 10) << "weights of " << name;
}

}  // namespace

WorkerNode::WorkerNode(Settings settings) {
  write_interpreter(folder_ / "python");
  TestNode::Settings node;
  node.models = {};
  node.engine = std::move(settings.worker);
  node.engine["name"] = settings.stands_for.name;
  node.arguments = std::move(settings.arguments);
  node.environment = std::move(settings.environment);
  node.environment.push_back(settings.stands_for.variables +
                             "_PYTHON=" + (folder_ / "python").string());
  node_ = std::make_unique<TestNode>(std::move(node));
  for (const std::string& name : settings.models) {
    write_model(folder_ / name, name, settings.stands_for);
    const CommandRun run = run_werk({"import", (folder_ / name).string(), "--name", name},
                                    {"WERK_HOME=" + node_->home().string()});
    if (run.status != 0) throw std::runtime_error("the model could not be imported: " + run.err);
  }
}

}  // namespace werk::test
