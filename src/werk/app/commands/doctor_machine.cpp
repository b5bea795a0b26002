#include "werk/app/commands/doctor_machine.hpp"

#include <fmt/format.h>
#include <netdb.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <memory>

#include "werk/app/node_client.hpp"
#include "werk/base/text.hpp"
#include "werk/engine/llama_server/activity.hpp"
#include "werk/process/descriptor.hpp"
#include "werk/process/node_lock.hpp"
#include "werk/process/program.hpp"

namespace werk::app {

namespace fs = std::filesystem;
using namespace std::chrono_literals;

namespace {

constexpr std::uint64_t kDiskBytesLow = 5'000'000'000;
constexpr rlim_t kDescriptorsLow = 4096;

// The folder itself, or the nearest one above it that exists.
fs::path nearest(fs::path folder) {
  std::error_code error;
  while (!fs::exists(folder, error) && folder.has_relative_path()) folder = folder.parent_path();
  return folder.empty() ? fs::path(".") : folder;
}

MachineFinding look_at_home(const fs::path& home) {
  const fs::path there = nearest(home);
  std::error_code error;
  if (!fs::is_directory(there, error) || ::access(there.c_str(), W_OK | X_OK) != 0) {
    return {"home", Finding::lack,
            fmt::format("{} can't be written; set WERK_HOME to another folder", home.string())};
  }
  return {"home", Finding::good,
          fmt::format("{}{}", home.string(), there == home ? "" : " (made when it is needed)")};
}

MachineFinding look_at_disk(const fs::path& home) {
  std::error_code error;
  const fs::space_info space = fs::space(nearest(home), error);
  if (error) return {"disk", Finding::note, "its free space can't be told: " + error.message()};
  return {"disk", space.available < kDiskBytesLow ? Finding::note : Finding::good,
          readable_bytes(space.available) + " free for models"};
}

MachineFinding look_at_node(const fs::path& home) {
  if (const auto info = process::NodeLock::running(home.string())) {
    return {"node", Finding::good,
            fmt::format("process {} serves this home at {}", info->pid, info->address)};
  }
  if (process::NodeLock::is_held(home.string()))
    return {"node", Finding::note, "one is starting or stopping on this home"};
  return {"node", Finding::good, "none runs on this home; `werk serve` starts one"};
}

// 0 where the address can be listened on.
int try_port(const Settings& settings) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_PASSIVE | AI_NUMERICSERV;
  addrinfo* found = nullptr;
  const std::string port = std::to_string(settings.port);
  if (::getaddrinfo(settings.host.c_str(), port.c_str(), &hints, &found) != 0) return EADDRNOTAVAIL;
  const std::unique_ptr<addrinfo, void (*)(addrinfo*)> list(found, ::freeaddrinfo);
  const process::Descriptor socket(
      ::socket(list->ai_family, list->ai_socktype | SOCK_CLOEXEC, list->ai_protocol));
  if (!socket) return errno;
  const int on = 1;
  ::setsockopt(socket.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
  return ::bind(socket.get(), list->ai_addr, list->ai_addrlen) == 0 ? 0 : errno;
}

// Who answers there, by what its front page says.
std::string holder_of(const std::string& url) {
  NodeRequest request;
  request.target = "/";
  request.silence_max = 2s;
  const auto page = NodeClient({url, {}, Way::direct}).ask(request);
  const std::string text = page ? to_lower(*page) : std::string();
  if (text.starts_with("werk is running")) return "another Werk";
  if (text.find("ollama is running") != std::string::npos) return "Ollama";
  return "another program";
}

MachineFinding look_at_port(const Settings& settings, const fs::path& home) {
  const bool is_v6 = settings.host.find(':') != std::string::npos;
  const std::string place =
      fmt::format(fmt::runtime(is_v6 ? "[{}]:{}" : "{}:{}"), settings.host, settings.port);
  if (settings.port == 0) return {"port", Finding::good, "any free one"};
  const int problem = try_port(settings);
  if (problem == 0) return {"port", Finding::good, place + " is free"};
  const std::string url = reachable_here("http://" + place);
  const auto own = process::NodeLock::running(home.string());
  if (own && reachable_here(own->address) == url)
    return {"port", Finding::good, place + " is this home's node"};
  if (problem == EADDRINUSE) {
    return {"port", Finding::note,
            fmt::format("{} is held by {}; `werk serve --port N` takes another one", place,
                        holder_of(url))};
  }
  return {"port", Finding::lack,
          fmt::format("{} can't be listened on: {}; --host and --port name another place", place,
                      std::strerror(problem))};
}

MachineFinding look_at_sockets(const Result<process::SocketFolder>& sockets) {
  if (!sockets) return {"sockets", Finding::lack, sockets.error().message};
  const fs::path folder = fs::path(sockets->path()).parent_path();
  const std::string wanted = process::own_variable("XDG_RUNTIME_DIR").value_or("");
  if (!wanted.empty() && folder != fs::path(wanted)) {
    return {"sockets", Finding::note,
            fmt::format("in {}, since XDG_RUNTIME_DIR ({} bytes) can't be written or is too long",
                        folder.string(), wanted.size())};
  }
  return {"sockets", Finding::good, "in " + folder.string()};
}

MachineFinding look_at_descriptors() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0)
    return {"descriptors", Finding::note, "their limit can't be told"};
  if (limit.rlim_max == RLIM_INFINITY) return {"descriptors", Finding::good, "no limit"};
  const bool low = limit.rlim_max < kDescriptorsLow;
  return {"descriptors", low ? Finding::note : Finding::good,
          fmt::format("at most {}{}", limit.rlim_max,
                      low ? "; so many connections fit less than twice (`ulimit -Hn`)" : "")};
}

MachineFinding look_at_memory(std::uint64_t largest_model_bytes) {
  const long pages = ::sysconf(_SC_PHYS_PAGES);
  const long page = ::sysconf(_SC_PAGE_SIZE);
  const std::uint64_t all =
      pages > 0 && page > 0 ? static_cast<std::uint64_t>(pages) * static_cast<std::uint64_t>(page)
                            : 0;
  const std::uint64_t free = engine::llama_server::memory_available_bytes();
  std::string text = fmt::format("{} of {} are free", readable_bytes(free), readable_bytes(all));
  if (largest_model_bytes <= all || all == 0) return {"memory", Finding::good, std::move(text)};
  text += fmt::format("; the largest model has {} and needs an accelerator",
                      readable_bytes(largest_model_bytes));
  return {"memory", Finding::note, std::move(text)};
}

}  // namespace

std::vector<MachineFinding> look_at_machine(const Settings& settings, const fs::path& home,
                                            const Result<process::SocketFolder>& sockets,
                                            std::uint64_t largest_model_bytes) {
  return {look_at_home(home),
          look_at_disk(home),
          look_at_node(home),
          look_at_port(settings, home),
          look_at_sockets(sockets),
          look_at_descriptors(),
          look_at_memory(largest_model_bytes)};
}

}  // namespace werk::app
