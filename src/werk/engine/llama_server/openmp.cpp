#include "werk/engine/llama_server/openmp.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <optional>

#include "werk/base/text.hpp"
#include "werk/process/program.hpp"

namespace werk::engine::llama_server {
namespace {

constexpr const char* kSharedMemory = "/dev/shm";

// What stands behind "    1234:\t"; none in a line that isn't the loader's.
std::optional<std::string_view> told_by_loader(std::string_view line) {
  const std::size_t number = line.find_first_not_of(' ');
  if (number == std::string_view::npos) return std::nullopt;
  const std::size_t end = line.find_first_not_of("0123456789", number);
  if (end == number || end == std::string_view::npos) return std::nullopt;
  if (!line.substr(end).starts_with(":\t")) return std::nullopt;
  return line.substr(end + 2);
}

}  // namespace

LoaderTrace read_loader_trace(std::string_view output) {
  static constexpr std::string_view kLoaded = "calling init: ";
  LoaderTrace trace;
  for_each_line(output, [&trace](std::string_view line) {
    const auto told = told_by_loader(line);
    if (!told) {
      trace.rest.append(line).append("\n");
    } else if (told->starts_with(kLoaded)) {
      const std::string_view path = told->substr(kLoaded.size());
      trace.libraries.emplace_back(path.substr(path.rfind('/') + 1));
    }
  });
  return trace;
}

OpenMp openmp_among(std::span<const std::string> libraries) {
  const auto any = [libraries](std::string_view head) {
    return std::ranges::any_of(
        libraries, [head](const std::string& library) { return library.starts_with(head); });
  };
  if (any("libomp.so") || any("libomp-") || any("libiomp5.so")) return OpenMp::llvm;
  return any("libgomp") ? OpenMp::gnu : OpenMp::none;
}

std::vector<std::string> preloading(std::vector<std::string> environment,
                                    std::string_view library) {
  constexpr std::string_view kName = "LD_PRELOAD";
  const std::string others = process::variable_in(environment, kName).value_or("");
  return process::with_variable(
      std::move(environment), kName,
      others.empty() ? std::string(library) : fmt::format("{}:{}", library, others));
}

bool has_shared_memory() { return ::access(kSharedMemory, W_OK) == 0; }

void remove_openmp_mark(pid_t pid) {
  const std::string mark =
      fmt::format("{}/__KMP_REGISTERED_LIB_{}_{}", kSharedMemory, pid, ::geteuid());
  ::unlink(mark.c_str());
}

}  // namespace werk::engine::llama_server
