#include "werk/app/engines.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>

#include "werk/base/assert.hpp"
#include "werk/base/log.hpp"
#include "werk/engine/llama_server/llama_server.hpp"
#include "werk/engine/masker.hpp"
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

// The mode of a backend's name, once there is an executable for it; of "auto" the best there is.
async::awaitable<Result<llama::Mode>> mode_for(llama::Finder& finder, std::string backend,
                                               std::stop_token stop) {
  if (const auto mode = llama::mode_of(backend)) {
    const Result<llama::Executable> found = co_await finder.find(*mode, stop);
    if (!found) co_return fail(found.error());
    co_return *mode;
  }
  const Result<llama::Finder::Choice> choice = co_await finder.choose(stop);
  if (!choice) co_return fail(choice.error());
  co_return choice->mode;
}

}  // namespace

Engines::Engines(EngineParts parts, const Settings& settings, std::filesystem::path home)
    : parts_(parts),
      settings_(settings),
      home_(std::move(home)),
      finder_(parts.children, parts.clock, parts.offload, finder_settings(settings, home_)) {}

async::awaitable<Status> Engines::prepare(std::stop_token stop) {
  Result<llama::Mode> mode = co_await mode_for(finder_, settings_.backend, stop);
  if (!mode) co_return pass_on(mode);
  add_llama("", {*mode, settings_.llama, machine_memory_bytes()}, finder_);
  for (const ModelSettings& model : settings_.models) {
    const bool own = model.llama != settings_.llama || model.backend != settings_.backend;
    if (own) co_await prepare_own(model, stop);
  }
  co_return Status();
}

async::awaitable<void> Engines::prepare_own(const ModelSettings& model, std::stop_token stop) {
  llama::Finder* finder = &finder_;
  if (model.llama.executable) {
    llama::FinderSettings settings = finder_settings(settings_, home_);
    settings.named = {};
    settings.named.any_mode = model.llama.executable;
    settings.named.any_mode_name = fmt::format("models.\"{}\".engine", model.id);
    own_finders_.push_back(std::make_unique<llama::Finder>(parts_.children, parts_.clock,
                                                           parts_.offload, std::move(settings)));
    finder = own_finders_.back().get();
  }
  Result<llama::Mode> mode = co_await mode_for(*finder, model.backend, stop);
  if (mode) {
    add_llama(model.id, {*mode, model.llama, machine_memory_bytes()}, *finder);
    co_return;
  }
  log::warn("{} can't be served: {}", model.id, mode.error().message);
  engine::Masker masker;
  masker.hide(home_.string(), "<home>");
  masker.hide(process::own_variable("HOME").value_or(""), "~");
  if (model.llama.executable) masker.hide(*model.llama.executable, "<engine>");
  const std::string name = model.backend == "auto" ? "llama-server" : model.backend;
  missing_[model.id].push_back({name, masker.apply(mode.error().message)});
}

void Engines::add_llama(std::string model, llama::LaunchSettings launch, llama::Finder& finder) {
  llama::LlamaServerSettings engine;
  engine.launch = launch;
  engine.environment = process::own_environment();
  engine.home = home_.string();
  const llama::Services services{parts_.executor, parts_.clock,   parts_.offload,
                                 parts_.children, parts_.sockets, finder};
  auto made = std::make_unique<llama::LlamaServerEngine>(services, std::move(engine));
  engines_.push_back({std::move(model), std::move(launch), finder, std::move(made)});
}

std::vector<engine::Engine*> Engines::in_order() const {
  std::vector<engine::Engine*> engines;
  for (const Made& made : engines_) {
    if (made.model.empty()) engines.push_back(made.engine.get());
  }
  return engines;
}

std::map<std::string, routing::Binding> Engines::of_models() const {
  std::map<std::string, routing::Binding> bindings;
  for (const auto& [model, missing] : missing_) bindings[model].missing = missing;
  for (const Made& made : engines_) {
    if (!made.model.empty()) bindings[made.model].engines.push_back(made.engine.get());
  }
  return bindings;
}

async::awaitable<Result<Engines::LaunchLine>> Engines::launch_line(const routing::Route& route,
                                                                   std::stop_token stop) {
  const Made& one = made(*route.engine);
  Result<llama::Executable> executable = co_await one.finder.find(one.launch.mode, stop);
  if (!executable) co_return pass_on(executable);
  Result<std::vector<std::string>> words = llama::words_for(route.plan, one.launch, *executable);
  if (!words) co_return pass_on(words);
  co_return LaunchLine{executable->path, executable->version.text(), std::move(*words)};
}

async::awaitable<std::vector<routing::Rejected>> Engines::others(const engine::Engine& engine,
                                                                 std::stop_token stop) {
  const Made& one = made(engine);
  const std::string backend = settings_of_model(settings_, one.model).backend;
  std::vector<routing::Rejected> others;
  for (const llama::Mode mode : llama::kModes) {
    if (mode == one.launch.mode) continue;
    std::string reason = fmt::format("not asked for: backend is {}", backend);
    if (backend == "auto") {
      const Result<llama::Executable> found = co_await one.finder.find(mode, stop);
      reason = found ? fmt::format("{} comes first", engine.info().name) : found.error().message;
    }
    others.push_back({llama::engine_name(mode), std::move(reason)});
  }
  co_return others;
}

const llama::LaunchSettings& Engines::launch_of(const engine::Engine& engine) const {
  return made(engine).launch;
}

const Engines::Made& Engines::made(const engine::Engine& engine) const {
  const auto found =
      std::ranges::find(engines_, &engine, [](const Made& one) { return one.engine.get(); });
  WERK_ASSERT(found != engines_.end());
  return *found;
}

}  // namespace werk::app
