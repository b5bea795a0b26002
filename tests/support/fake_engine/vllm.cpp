#include "tests/support/fake_engine/vllm.hpp"

#include <fmt/format.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>

namespace werk::fake {

bool is_vllm(const std::string& program) {
  return program.substr(program.rfind('/') + 1) == "vllm";
}

CommandLine read_vllm_line(const std::vector<std::string>& words) {
  CommandLine line;
  line.is_vllm = true;
  for (std::size_t i = 0; i + 1 < words.size(); ++i) {
    if (words[i] == "serve") line.model = words[i + 1];
    if (words[i] == "--served-model-name") line.alias = words[i + 1];
    if (words[i] == "--uds" || words[i] == "--host") line.host = words[i + 1];
    if (words[i] == "--port") line.port = static_cast<std::uint16_t>(std::stoul(words[i + 1]));
  }
  if (const char* key = std::getenv("VLLM_API_KEY")) line.api_keys = {key};
  return line;
}

pid_t start_core() {
  const pid_t core = ::fork();
  if (core != 0) return core;
  ::prctl(PR_SET_NAME, "VLLM::EngineCor");
  std::signal(SIGTERM, SIG_IGN);
  while (true) ::pause();
}

void wait_for_core(pid_t core) {
  while (::waitpid(core, nullptr, 0) < 0 && errno == EINTR) {
  }
}

std::string vllm_error(unsigned status, std::string_view type, std::string_view message) {
  json::object error{
      {"message", message}, {"type", type}, {"param", nullptr}, {"code", status}};
  return json::serialize(json::object{{"error", std::move(error)}});
}

std::string core_error() {
  return vllm_error(500, "InternalServerError",
                    "EngineCore encountered an issue. See stack trace (above) for the root cause.");
}

std::optional<StatusAnswer> vllm_status(const Request& request, const std::string& model_name,
                                        const Settings& settings, Core core) {
  const std::string path = request.path();
  const bool get = request.method == "GET";
  if (get && path == "/health") return StatusAnswer{core == Core::dead ? 503U : 200U, ""};
  if (get && path == "/version") {
    return StatusAnswer{200, json::serialize(json::object{{"version", settings.version}})};
  }
  if (get && path == "/v1/models") {
    json::object model{{"id", model_name},
                       {"object", "model"},
                       {"owned_by", "vllm"},
                       {"max_model_len", settings.n_ctx > 0 ? settings.n_ctx
                                                            : settings.n_ctx_train}};
    return StatusAnswer{200, json::serialize(json::object{
                                 {"object", "list"}, {"data", json::array{std::move(model)}}})};
  }
  if (!get && path == "/tokenize") {
    json::array tokens;
    for (std::uint64_t i = 0; i < settings.reply.prompt_tokens; ++i) tokens.emplace_back(i);
    return StatusAnswer{200, json::serialize(json::object{{"count", tokens.size()},
                                                          {"max_model_len", settings.n_ctx_train},
                                                          {"tokens", std::move(tokens)},
                                                          {"token_strs", nullptr}})};
  }
  return std::nullopt;
}

}  // namespace werk::fake
