// What was prepared of the real engines and their models, outside the checkout: WERK_HOME
// (llama-server and a GGUF), WERK_TEST_WORKERS (tests/workers/prepare) and WERK_TEST_VLLM
// (tests/vllm/prepare) name the places. A part that isn't there says why, for a test that is
// skipped or goes on without it. Plain values, read from the disk once; any thread.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace werk::test {

struct PreparedEngine {
  std::filesystem::path program;  // llama-server, or the python of the engine's environment
  std::filesystem::path model;
  std::string missing;  // why it can't be used; empty: it can
};

// WERK_LLAMA_SERVER names another llama-server.
PreparedEngine prepared_llama_server();
PreparedEngine prepared_onnx_genai();
PreparedEngine prepared_vllm();

// Links the model into the home under this id; throws where that fails.
void import_linked(const std::filesystem::path& home, const std::filesystem::path& model,
                   const std::string& id);

// vLLM with one thread and a small cache: what vLLM itself is told, and the words it is given.
std::vector<std::string> small_vllm_environment();
std::vector<std::string> small_vllm_words();
// The same for a node that starts it.
std::vector<std::string> vllm_node_environment(const PreparedEngine& vllm);

// The socket on which the vLLM with this process id listens; empty where it has none.
std::string vllm_socket(int pid);
// How many calls run in it, by its own metrics; -1 where it doesn't say.
int running_in_vllm(const std::string& socket);

}  // namespace werk::test
