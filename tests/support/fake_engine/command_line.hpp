// llama-server's command line as far as a driver uses it: flags, --help, --version, --list-devices,
// in the wording and on the streams of v0.5.0. Pure apart from what the caller prints.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tests/support/fake_engine/settings.hpp"

namespace werk::fake {

struct CommandLine {
  std::string model;
  std::string alias;
  std::string host = "127.0.0.1";
  std::uint16_t port = 8080;
  std::int64_t parallel = -1;
  std::uint64_t context = 0;
  std::vector<std::string> api_keys;
  bool embeddings = false;
  bool metrics = false;
  bool help = false;
  bool version = false;
  bool list_devices = false;
  bool is_vllm = false;  // of that engine's command; see vllm.hpp
  std::string unknown;  // the first flag that llama-server does not know
};

CommandLine read_command_line(const std::vector<std::string>& words);
// Flags that the settings take away count as unknown.
std::string first_unknown(const std::vector<std::string>& words, const Settings& settings);

std::string help_text(const Settings& settings);
std::string version_text(const Settings& settings);
std::string devices_text(const Settings& settings);

// What -np and -c come to.
struct Sizes {
  std::uint64_t slots = 0;
  std::uint64_t context_per_slot = 0;
};
Sizes sizes_of(const CommandLine& line, const Settings& settings);

}  // namespace werk::fake
