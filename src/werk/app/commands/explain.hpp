// `werk explain MODEL`: what would serve a model under these settings and why, without starting it:
// the route and what was rejected, the runtime key, the launch line with where each part came from,
// and the memory it is expected to take. Secrets and private paths are masked, so that the text may
// be shown to others. Blocking; main thread, a loop only while executables are looked at.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "werk/app/command_line.hpp"
#include "werk/engine/llama_server/memory.hpp"
#include "werk/routing/router.hpp"

namespace werk::app {

// A flag of the launch line with its values, and who decided it.
struct LaunchPart {
  std::vector<std::string> words;
  std::string source;
};

struct Explanation {
  std::string asked;
  std::string id;
  std::string found_by;  // "its id", "its alias", "the alias claude-*"
  std::string engine;
  std::string version;
  std::vector<routing::Rejected> rejected;
  std::string key;
  std::size_t slots = 1;
  std::uint64_t context_tokens_per_slot = 0;  // 0: the engine decides
  std::string server;  // of a remote: its URL; then there is neither program nor memory
  std::string program;
  std::vector<LaunchPart> parts;
  engine::llama_server::MemoryEstimate memory;
  std::string note;                   // what a person may not expect; may be empty
  std::uint64_t machine_bytes = 0;    // 0: unknown
  std::uint64_t available_bytes = 0;  // now; 0: unknown
};

// Who decided each part of the words, which end with the options' own extra arguments.
std::vector<LaunchPart> launch_parts(const std::vector<std::string>& words,
                                     const Settings& settings, const ModelSettings& model);

// The same for a vLLM.
std::vector<LaunchPart> vllm_parts(const std::vector<std::string>& words, const Settings& settings);

std::string explain_text(const Explanation& explanation);
std::string explain_json(const Explanation& explanation);

int explain_command(const CommandLine& line, const Settings& settings,
                    const std::filesystem::path& home);

}  // namespace werk::app
