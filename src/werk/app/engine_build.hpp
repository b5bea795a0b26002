// How llama-server is built from its source: which source (pinned, with its digest), which tools it
// takes, which options. Functions for the command `werk engine install`; they block, and everything
// they write lies in the scratch folder they are given. The pure ones have no other effect.
// Source of the pins and options: llama.cpp v0.5.0 as it was built and seen running.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "werk/app/steps.hpp"
#include "werk/base/result.hpp"
#include "werk/engine/llama_server/managed.hpp"

namespace werk::app {

// The npm package that carries the whole source of llama.cpp v0.5.0 as a git bundle.
inline constexpr std::string_view kLlamaPackage = "node-llama-cpp@3.22.1";
inline constexpr std::string_view kLlamaPackageFile = "node-llama-cpp-3.22.1.tgz";
inline constexpr std::string_view kLlamaPackageSha256 =
    "a0d9dd80eacd2ab1cfe71aee57ac8a806487fd70b3d2a38fbec637752d9e5c5f";

struct BuildSite {
  StepRunner& runner;
  const Say& say;
  std::filesystem::path scratch;
  std::vector<std::string> environment;  // complete
  std::string search_path;
};

// What the source must be got from: nothing more is needed for a folder.
enum class SourceKind : std::uint8_t { package_from_registry, package_file, folder };

// `not_found` with every missing tool and the Debian package that brings it.
Status check_build_tools(SourceKind kind, std::string_view search_path);

// Fetches the package with npm (or with one brought into the scratch folder by pip) and gives its
// path. Fails with the ways to supply the source without a network.
Result<std::filesystem::path> fetch_llama_package(const BuildSite& site);
// Checks the package's digest and unpacks the source. Gives the source folder.
Result<std::filesystem::path> unpack_llama_package(const BuildSite& site,
                                                   const std::filesystem::path& package);
// Configures and builds. Gives the executable's path.
Result<std::filesystem::path> build_llama_server(const BuildSite& site,
                                                 const std::filesystem::path& source,
                                                 const engine::llama_server::Processor& processor);

// Everything after `cmake -S ... -B ...`.
std::vector<std::string> llama_cmake_options(const engine::llama_server::Processor& processor);

// Steps done and steps in all, from a line of ninja ("[12/204] ...") or make ("[ 12%] ...").
struct BuildProgress {
  std::uint64_t done = 0;
  std::uint64_t total = 0;
};
std::optional<BuildProgress> build_progress(std::string_view line);

}  // namespace werk::app
