#include "tests/e2e/prepared.hpp"

#include <cstdlib>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <string_view>

#include "tests/support/http_call.hpp"
#include "werk/engine/llama_server/managed.hpp"
#include "werk/model/store.hpp"

namespace werk::test {
namespace {

namespace fs = std::filesystem;
namespace llama = engine::llama_server;

std::string read_file(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

PreparedEngine without(std::string why) { return {{}, {}, std::move(why)}; }

}  // namespace

PreparedEngine prepared_llama_server() {
  const char* home = std::getenv("WERK_HOME");
  if (home == nullptr) return without("WERK_HOME names no prepared home");
  const char* named = std::getenv("WERK_LLAMA_SERVER");
  const auto managed = llama::usable_managed(home, llama::this_processor().fingerprint());
  if (named == nullptr && !managed) return without("no engine is installed in WERK_HOME");
  const auto model = model::Store(home).find("smollm2");
  if (!model) return without("smollm2 is not in WERK_HOME: " + model.error().message);
  const fs::path program = named != nullptr ? fs::path(named) : managed->executable();
  return {program, model->weights_path(), {}};
}

PreparedEngine prepared_onnx_genai() {
  const char* workers = std::getenv("WERK_TEST_WORKERS");
  if (workers == nullptr) return without("WERK_TEST_WORKERS names no prepared folder");
  PreparedEngine engine{
      fs::path(workers) / "onnx-genai" / "bin" / "python", fs::path(workers) / "smollm2-onnx", {}};
  if (!fs::exists(engine.program) || !fs::exists(engine.model))
    engine.missing = "ONNX GenAI is not prepared";
  return engine;
}

PreparedEngine prepared_vllm() {
  const char* vllm = std::getenv("WERK_TEST_VLLM");
  const char* workers = std::getenv("WERK_TEST_WORKERS");
  if (vllm == nullptr || workers == nullptr)
    return without("WERK_TEST_VLLM or WERK_TEST_WORKERS names no prepared folder");
  PreparedEngine engine{
      fs::path(vllm) / "environment" / "bin" / "python", fs::path(workers) / "smollm2-hf", {}};
  if (!fs::exists(engine.program))
    engine.missing = "there is no vLLM: " + read_file(fs::path(vllm) / "why");
  else if (!fs::exists(engine.model))
    engine.missing = "there is no model: " + engine.model.string();
  return engine;
}

void import_linked(const fs::path& home, const fs::path& model, const std::string& id) {
  model::ImportRequest request;
  request.path = model;
  request.id = id;
  request.mode = model::ImportMode::link;
  const auto imported = model::Store(home).import_file(request);
  if (!imported) throw std::runtime_error("can't import " + id + ": " + imported.error().message);
}

std::vector<std::string> small_vllm_environment() {
  return {"VLLM_CPU_KVCACHE_SPACE=1", "OMP_NUM_THREADS=1", "VLLM_CPU_OMP_THREADS_BIND=nobind"};
}

std::vector<std::string> small_vllm_words() {
  return {"--max-model-len", "1024", "--dtype", "float32", "--enforce-eager"};
}

std::vector<std::string> vllm_node_environment(const PreparedEngine& vllm) {
  std::vector<std::string> environment = small_vllm_environment();
  environment.push_back("WERK_VLLM_PYTHON=" + vllm.program.string());
  environment.emplace_back("WERK_VLLM_HEALTH_TIMEOUT_SECONDS=600");
  std::string words = "WERK_VLLM_ARGS=";
  for (const std::string& word : small_vllm_words()) words += word + " ";
  environment.push_back(std::move(words));
  return environment;
}

std::string vllm_socket(int pid) {
  const std::string line = read_file("/proc/" + std::to_string(pid) + "/cmdline");
  const std::string flag = std::string("--uds") + '\0';
  const std::size_t at = line.find(flag);
  if (at == std::string::npos) return {};
  return line.substr(at + flag.size()).c_str();
}

int running_in_vllm(const std::string& socket) {
  constexpr std::string_view kRunning = "\nvllm:num_requests_running{";
  HttpCall call = HttpCall::to_socket(socket, "GET", "/metrics", {}, {});
  const std::string& metrics = call.whole_body();
  const std::size_t line = metrics.find(kRunning);
  if (line == std::string::npos) return -1;
  return static_cast<int>(std::atof(metrics.c_str() + metrics.find("} ", line) + 2));
}

}  // namespace werk::test
