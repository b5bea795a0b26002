#include "werk/app/engines.hpp"

#include <unistd.h>

#include "werk/base/log.hpp"
#include "werk/engine/llama_server/llama_server.hpp"
#include "werk/process/program.hpp"

namespace werk::app {

namespace llama = engine::llama_server;

namespace {

std::uint64_t machine_memory_bytes() {
  const long pages = ::sysconf(_SC_PHYS_PAGES);
  const long page = ::sysconf(_SC_PAGE_SIZE);
  return pages > 0 && page > 0
             ? static_cast<std::uint64_t>(pages) * static_cast<std::uint64_t>(page)
             : 0;
}

llama::FinderSettings finder_settings(const Settings& settings, const std::filesystem::path& home) {
  llama::FinderSettings finder;
  finder.named = settings.executables;
  finder.search_path = process::own_variable("PATH").value_or("");
  finder.home = home;
  finder.environment = process::own_environment();
  return finder;
}

}  // namespace

Engines::Engines(EngineParts parts, const Settings& settings, std::filesystem::path home)
    : parts_(parts),
      settings_(settings),
      home_(std::move(home)),
      finder_(parts.children, parts.clock, parts.offload, finder_settings(settings, home_)) {}

async::awaitable<Status> Engines::prepare(std::stop_token stop) {
  if (const auto mode = llama::mode_of(settings_.backend)) {
    const Result<llama::Executable> found = co_await finder_.find(*mode, stop);
    if (!found) co_return fail(found.error());
    add_llama(*mode);
    co_return Status();
  }
  const Result<llama::Finder::Choice> choice = co_await finder_.choose(stop);
  if (!choice) co_return fail(choice.error());
  add_llama(choice->mode);
  co_return Status();
}

void Engines::add_llama(llama::Mode mode) {
  llama::LlamaServerSettings engine;
  engine.launch.mode = mode;
  engine.launch.options = settings_.llama;
  engine.launch.memory_bytes = machine_memory_bytes();
  engine.environment = process::own_environment();
  engine.home = home_.string();
  const llama::Services services{parts_.executor, parts_.clock,   parts_.offload,
                                 parts_.children, parts_.sockets, finder_};
  engines_.push_back(std::make_unique<llama::LlamaServerEngine>(services, std::move(engine)));
}

std::vector<engine::Engine*> Engines::in_order() const {
  std::vector<engine::Engine*> engines;
  for (const auto& engine : engines_) engines.push_back(engine.get());
  return engines;
}

}  // namespace werk::app
