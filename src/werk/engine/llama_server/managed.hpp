// The llama-servers that Werk installed itself, below WERK_HOME:
// `engines/llama-server/<version>-<processor>/` with `bin/llama-server` and `engine.json`. A folder
// belongs to processors with the same relevant features and is never used on another one, so a home
// may be carried from machine to machine. engine.json is written last, so a folder without it is
// not an engine. Functions that touch the disk read a few small files and may run anywhere; the
// rest is pure.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "werk/base/result.hpp"

namespace werk::engine::llama_server {

struct Processor {
  std::string architecture;  // "x86_64"
  std::string model;         // "AMD EPYC ...", for people
  std::vector<std::string>
      features;  // those that decide how an engine may be compiled, sorted: "avx2", "fma"

  bool has(std::string_view feature) const;
  // "x86_64-1f2e3d4c": equal for processors that run one another's engines.
  std::string fingerprint() const;
};

// From the text of /proc/cpuinfo and the machine's name for its architecture (uname -m).
Processor parse_processor(std::string_view cpuinfo, std::string_view architecture);
Processor this_processor();

struct ManagedEngine {
  std::string version;           // "0.5.0"
  std::string source;            // where it came from, for people
  std::string processor;         // fingerprint
  std::string built_for;         // model and features, for people
  std::string sha256;            // of the package it was built from; empty with --from
  std::string installed_at;      // "2026-11-29T22:36:00Z"
  std::filesystem::path folder;  // not stored
  std::filesystem::path executable() const { return folder / "bin" / "llama-server"; }
};

std::filesystem::path managed_root(const std::filesystem::path& home);
std::string managed_name(std::string_view version, std::string_view fingerprint);

std::string managed_to_json(const ManagedEngine& engine);
Result<ManagedEngine> managed_from_json(std::string_view text);

// All complete ones, the last installed first, those for other processors included.
std::vector<ManagedEngine> list_managed(const std::filesystem::path& home);
// The last installed one for this processor.
std::optional<ManagedEngine> usable_managed(const std::filesystem::path& home,
                                            std::string_view fingerprint);

}  // namespace werk::engine::llama_server
