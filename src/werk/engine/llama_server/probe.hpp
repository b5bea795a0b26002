// What a llama-server executable says of itself, read from the text of `--version`, `--help` and
// `--list-devices`. Pure parsers; finder.hpp runs the program. Old executables know only a build
// number, newer ones a semantic version too, and some write to standard error what others write to
// standard output, so callers pass both. Any thread. Source: llama.cpp v0.5.0 and 0.7.0 seen
// running, older formats from their printing code's documentation.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "werk/engine/llama_server/openmp.hpp"
#include "werk/engine/llama_server/options.hpp"

namespace werk::engine::llama_server {

struct Version {
  std::string semantic;     // "0.5.0"; empty: the executable has none
  std::uint64_t build = 0;  // 0: unknown
  std::string commit;       // short; may be empty

  // "0.5.0", else "build 4567", else "of unknown version".
  std::string text() const;
  bool operator==(const Version&) const = default;
};

// From a line "version: 0.5.0 (build 1, commit de3ff81)" or "version: 4567 (de3ff81)"; none without
// such a line.
std::optional<Version> parse_version(std::string_view output);

// Every spelling of every option that works; those described as removed are left out.
std::set<std::string, std::less<>> parse_help_flags(std::string_view output);

struct Device {
  std::string name;         // "CUDA0"
  std::string description;  // "NVIDIA GeForce RTX 3090"

  bool operator==(const Device&) const = default;
};

// None when the list is empty or says "(none)".
std::vector<Device> parse_devices(std::string_view output);

// The accelerator that a device name belongs to; none for kinds that Werk has no mode for.
std::optional<Mode> mode_of_device(std::string_view device_name);

// An executable that ran, with what it said.
struct Executable {
  std::string path;  // absolute
  Version version;
  std::set<std::string, std::less<>> flags;
  std::vector<Device> devices;
  OpenMp openmp = OpenMp::none;  // what its threads wait with, once `preload` was loaded
  std::string preload;  // LLVM's OpenMP, to be loaded before GNU's; empty: no need, or none

  bool knows(std::string_view flag) const { return flags.contains(flag); }
  // Whether it can compute in this mode: any executable for the processor, one with such a device
  // for the others.
  bool suits(Mode mode) const;
  // The accelerator that suits best, else the processor.
  Mode best_mode() const;
};

}  // namespace werk::engine::llama_server
