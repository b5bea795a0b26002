// How a llama-server's threads wait for one another. They meet hundreds of times for each token.
// With GNU's OpenMP who comes first spins and keeps the core from whatever else runs, so two
// engines that share cores all but stop one another; with LLVM's it yields the core. LLVM's takes
// the calls that were compiled for GNU's, so an engine that loads it first waits in the better way
// without being built for it. What an executable loads is read from what glibc's loader tells of a
// run with LD_DEBUG. Pure but for the two functions on this machine; any thread. Source: LLVM's
// OpenMP 14 and 16 and glibc 2.36, seen running (figures: docs/concurrency.md).
#pragma once

#include <sys/types.h>

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace werk::engine::llama_server {

enum class OpenMp : std::uint8_t { none, gnu, llvm };

// LLVM's, by the names that systems give it, for the loader to find.
inline constexpr std::array<std::string_view, 2> kLlvmOpenMp{"libomp.so.5", "libomp.so"};

// What a run with LD_DEBUG=libs printed.
struct LoaderTrace {
  std::vector<std::string> libraries;  // file names of those that were loaded, plugins among them
  std::string rest;                    // what the program itself printed
};
LoaderTrace read_loader_trace(std::string_view output);

// The one that takes the calls: LLVM's wherever it is, since it is loaded first or alone.
OpenMp openmp_among(std::span<const std::string> libraries);

// The environment with this library loaded before those that it names already.
std::vector<std::string> preloading(std::vector<std::string> environment, std::string_view library);

// Whether LLVM's can start here: it leaves a mark of each process in shared memory and gives up
// where it can't.
bool has_shared_memory();
// Removes that mark of a process, if there is one. Nothing needs it (it tells two copies in one
// process), and one of a process that was killed would stay for good.
void remove_openmp_mark(pid_t pid);

}  // namespace werk::engine::llama_server
