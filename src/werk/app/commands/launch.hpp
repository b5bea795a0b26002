// `werk launch claude`: a coding client on a model of this machine, set up for this run only. It
// refuses beforehand what can't work, finds the running node of the home or starts one that ends
// with the client, and hands the terminal to the client. Blocking; main thread, a loop only while a
// node is started or stopped.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "werk/app/command_line.hpp"
#include "werk/engine/llama_server/options.hpp"
#include "werk/model/store.hpp"

namespace werk::app {

// What Claude Code sends before the person has said much: 48 KB of instructions and tools.
inline constexpr std::uint64_t kClaudeFirstPromptTokens = 20'000;

// The context of a slot, in tokens (0: the engine decides), of a model that the client can work
// with under these options. Fails with what is missing, in numbers, and the way out.
Result<std::uint64_t> check_fitness(const model::InstalledModel& model,
                                    const engine::llama_server::LlamaServerOptions& options);

struct ClientTarget {
  std::string url;
  std::string key;
  std::string model;
  // Of a slot. The client takes a model that it doesn't know for one of a million tokens, and would
  // never sum a conversation up before it is too long; 0: it is not told.
  std::uint64_t context_tokens = 0;
};

// The client's environment: `own` with everything that leads it to the node, and without what would
// lead it elsewhere.
std::vector<std::string> claude_environment(std::vector<std::string> own,
                                            const ClientTarget& target);

// Returns the client's exit status (128 and the signal that ended it), or 1 with the reason on
// standard error. Doesn't return where a node ran already: this process becomes the client.
int launch_command(const CommandLine& line, const Settings& settings,
                   const std::filesystem::path& home);

}  // namespace werk::app
