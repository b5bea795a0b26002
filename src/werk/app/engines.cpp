#include "werk/app/engines.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>

#include "werk/app/engine_environment.hpp"
#include "werk/base/assert.hpp"
#include "werk/base/log.hpp"
#include "werk/engine/llama_server/llama_server.hpp"
#include "werk/engine/masker.hpp"
#include "werk/process/linux.hpp"
#include "werk/process/program.hpp"

namespace werk::app {

namespace llama = engine::llama_server;
namespace worker = engine::worker;

namespace {

// Of models, where the engine that is named goes by their names alone.
const std::vector<std::string> kAllFormats = {"safetensors", "gguf", "onnx-genai"};

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

std::uint64_t machine_memory_bytes() {
  const long pages = ::sysconf(_SC_PHYS_PAGES);
  const long page = ::sysconf(_SC_PAGE_SIZE);
  return pages > 0 && page > 0
             ? static_cast<std::uint64_t>(pages) * static_cast<std::uint64_t>(page)
             : 0;
}

llama::Threads threads_each(const Settings& settings, std::size_t cores) {
  std::size_t active = settings.active_models.value_or(2);
  if (settings.max_resident > 0) active = std::min(active, settings.max_resident);
  const std::size_t divided = std::max<std::size_t>(cores / active, 1);
  const std::size_t yielding = settings.active_models ? divided : cores;
  return {static_cast<std::uint32_t>(divided), static_cast<std::uint32_t>(yielding)};
}

llama::FinderSettings llama_finder_settings(const Settings& settings,
                                            const std::filesystem::path& home) {
  llama::FinderSettings finder;
  finder.named = settings.executables;
  finder.search_path = process::own_variable("PATH").value_or("");
  finder.home = home;
  finder.environment = environment_without_keys(settings);
  return finder;
}

Engines::Engines(EngineParts parts, const Settings& settings, std::filesystem::path home)
    : parts_(parts),
      settings_(settings),
      home_(std::move(home)),
      threads_(threads_each(settings, process::os::usable_cores())),
      finder_(parts.children, parts.clock, parts.offload, llama_finder_settings(settings, home_)) {}

async::awaitable<Status> Engines::prepare(std::stop_token stop) {
  Status address = check_vllm_address();
  if (!address) co_return address;
  Status remotes = add_remotes();
  if (!remotes) co_return remotes;
  std::optional<Error> no_llama;
  if (const auto* kind = worker::worker_kind(settings_.backend)) {
    worker::WorkerEngine& engine = add_worker("", *kind, settings_.llama);
    const Result<worker::Interpreter> found = co_await engine.look(stop);
    if (!found) co_return fail(found.error());
  } else if (settings_.backend == engine::vllm::kEngineName && vllm_is_remote()) {
    add_vllm_stand_in("", kAllFormats);
  } else if (settings_.backend == engine::vllm::kEngineName) {
    engine::vllm::VllmEngine& vllm = add_vllm("");
    const Result<engine::vllm::Executable> found = co_await vllm.look(stop);
    if (!found) co_return fail(found.error());
  } else {
    Result<llama::Mode> mode = co_await mode_for(finder_, settings_.backend, stop);
    const bool is_auto = settings_.backend == "auto";
    if (mode) add_llama("", {*mode, settings_.llama, machine_memory_bytes(), threads_}, finder_);
    if (is_auto) co_await add_vllm_if_there("", stop);
    if (is_auto) add_workers("", settings_.llama);
    if (!mode && !is_auto) co_return pass_on(mode);
    if (!mode) no_llama = std::move(mode.error());
  }
  for (const ModelSettings& model : settings_.models) {
    const bool own = model.llama != settings_.llama || model.backend != settings_.backend;
    if (own) co_await prepare_own(model, stop);
  }
  if (!no_llama) co_return Status();
  co_return co_await do_without_llama(std::move(*no_llama), stop);
}

// Without a llama-server for all models the node serves what others can, if there is one: vLLM,
// workers, remotes, or an engine that a model has of its own.
async::awaitable<Status> Engines::do_without_llama(Error no_llama, std::stop_token stop) {
  const bool some_own = std::ranges::any_of(
      engines_, [](const Made& one) { return one.finder != nullptr && !one.model.empty(); });
  bool any = some_own || vllm() != nullptr || vllm_is_remote();
  for (worker::WorkerEngine* engine : workers()) {
    const Result<worker::Interpreter> found = co_await engine->look(stop);
    if (found) any = true;
  }
  if (!any && settings_.remotes.empty()) co_return fail(std::move(no_llama));
  node_missing_.push_back({"llama-server", without_paths(no_llama.message, settings_.executables)});
  log::warn("GGUF models without an engine of their own can't be served: {}", no_llama.message);
  co_return Status();
}

async::awaitable<void> Engines::prepare_own(const ModelSettings& model, std::stop_token stop) {
  if (const auto* kind = worker::worker_kind(model.backend)) {
    add_worker(model.id, *kind, model.llama);
    co_return;
  }
  if (model.backend == engine::vllm::kEngineName) {
    if (vllm_is_remote()) {
      add_vllm_stand_in(model.id, kAllFormats);
    } else {
      add_vllm(model.id);
    }
    co_return;
  }
  if (model.backend == "auto") {
    co_await add_vllm_if_there(model.id, stop);
    add_workers(model.id, model.llama);
  }
  llama::Finder* finder = &finder_;
  if (model.llama.executable) {
    llama::FinderSettings settings = llama_finder_settings(settings_, home_);
    settings.named = {};
    settings.named.any_mode = model.llama.executable;
    settings.named.any_mode_name = fmt::format("models.\"{}\".engine", model.id);
    own_finders_.push_back(std::make_unique<llama::Finder>(parts_.children, parts_.clock,
                                                           parts_.offload, std::move(settings)));
    finder = own_finders_.back().get();
  }
  Result<llama::Mode> mode = co_await mode_for(*finder, model.backend, stop);
  if (mode) {
    add_llama(model.id, {*mode, model.llama, machine_memory_bytes(), threads_}, *finder);
    co_return;
  }
  log::warn("{} can't be served: {}", model.id, mode.error().message);
  const std::string name = model.backend == "auto" ? "llama-server" : model.backend;
  llama::NamedExecutables named;
  named.any_mode = model.llama.executable;
  missing_[model.id].push_back({name, without_paths(mode.error().message, named)});
}

std::string Engines::without_paths(const std::string& message,
                                   const llama::NamedExecutables& named) const {
  engine::Masker masker;
  masker.hide(home_.string(), "<home>");
  masker.hide(process::own_variable("HOME").value_or(""), "~");
  if (named.any_mode) masker.hide(*named.any_mode, "<engine>");
  for (const auto& executable : named.by_mode) {
    if (executable) masker.hide(*executable, "<engine>");
  }
  return masker.apply(message);
}

void Engines::add_llama(std::string model, llama::LaunchSettings launch, llama::Finder& finder) {
  llama::LlamaServerSettings engine;
  engine.launch = launch;
  engine.environment = environment_without_keys(settings_);
  engine.home = home_.string();
  const llama::Services services{parts_.executor, parts_.clock, parts_.offload, parts_.children,
                                 parts_.sockets,  finder,       parts_.output};
  auto made = std::make_unique<llama::LlamaServerEngine>(services, std::move(engine));
  engines_.push_back({std::move(model), std::move(launch), &finder, nullptr, std::move(made)});
}

worker::WorkerEngine& Engines::add_worker(std::string model, const worker::WorkerKind& kind,
                                          const llama::LlamaServerOptions& options) {
  const bool is_onnx = &kind == &worker::kOnnxGenai;
  worker::WorkerSettings settings;
  settings.programs = worker_programs();
  settings.interpreter.home = home_;
  settings.interpreter.environment = environment_without_keys(settings_);
  const auto name = [&](std::string_view variable, const std::optional<std::string>& program) {
    if (!program || settings.interpreter.named) return;
    settings.interpreter.named = program;
    settings.interpreter.named_by = variable;
  };
  if (is_onnx) {
    name(kind.variables[0], settings_.onnx_genai_python);
    name(kind.variables[1], settings_.onnx_runtime_python);
  } else {
    name(kind.variables[0], settings_.transformers_python);
    settings.device = settings_.device.value_or("");
    settings.dtype = settings_.dtype.value_or("");
  }
  settings.threads = options.threads.value_or(threads_.spinning);
  settings.context_tokens = options.ctx_size.value_or(0);
  settings.cancel_limit = settings_.worker_cancel_limit;
  const std::size_t kept = is_onnx ? settings_.onnx_genai_models : settings_.transformers_models;
  settings.keep = kept == 0 ? worker::Keep::worker : worker::Keep::nothing;
  const worker::WorkerServices services{parts_.executor, parts_.clock, parts_.offload,
                                        parts_.children, parts_.output};
  auto made = std::make_unique<worker::WorkerEngine>(kind, services, std::move(settings));
  worker::WorkerEngine& engine = *made;
  engines_.push_back({std::move(model), std::nullopt, nullptr, &engine, std::move(made)});
  return engine;
}

void Engines::add_workers(const std::string& model, const llama::LlamaServerOptions& options) {
  for (const worker::WorkerKind* kind : {&worker::kOnnxGenai, &worker::kTransformers})
    add_worker(model, *kind, options);
}

std::vector<worker::WorkerEngine*> Engines::workers() const {
  std::vector<worker::WorkerEngine*> workers;
  for (const Made& made : engines_) {
    if (made.worker != nullptr && made.model.empty()) workers.push_back(made.worker);
  }
  return workers;
}

async::awaitable<void> Engines::shut_down() {
  for (const Made& made : engines_) co_await made.engine->shut_down();
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
  // A remote's model may have settings too.
  for (auto& [model, binding] : bindings) {
    for (engine::remote::RemoteEngine* remote : remotes()) binding.engines.push_back(remote);
  }
  return bindings;
}

async::awaitable<Result<Engines::LaunchLine>> Engines::launch_line(const routing::Route& route,
                                                                   std::stop_token stop) {
  const Made& one = made(*route.engine);
  if (one.stand_in != nullptr) co_return LaunchLine{one.stand_in->remote().url.text(), {}, {}};
  if (one.remote != nullptr) co_return LaunchLine{one.remote->settings().url.text(), {}, {}};
  if (one.worker != nullptr) {
    Result<worker::Interpreter> found = co_await one.worker->look(stop);
    if (!found) co_return pass_on(found);
    const std::vector<std::string>& script = route.plan.arguments;
    co_return LaunchLine{
        found->path, found->package_version, {(worker_programs() / script.front()).string()}};
  }
  if (one.vllm != nullptr) co_return co_await vllm_line(*one.vllm, route, stop);
  Result<llama::Executable> executable = co_await one.finder->find(one.launch->mode, stop);
  if (!executable) co_return pass_on(executable);
  Result<std::vector<std::string>> words = llama::words_for(route.plan, *one.launch, *executable);
  if (!words) co_return pass_on(words);
  co_return LaunchLine{executable->path, executable->version.text(), std::move(*words)};
}

async::awaitable<std::vector<routing::Rejected>> Engines::others(const engine::Engine& engine,
                                                                 std::stop_token stop) {
  const Made& one = made(engine);
  const std::string backend = settings_of_model(settings_, one.model).backend;
  std::vector<routing::Rejected> others;
  if (!one.launch) co_return others;  // the route itself names those before it
  for (const llama::Mode mode : llama::kModes) {
    if (mode == one.launch->mode) continue;
    std::string reason = fmt::format("not asked for: backend is {}", backend);
    if (backend == "auto") {
      const Result<llama::Executable> found = co_await one.finder->find(mode, stop);
      reason = found ? fmt::format("{} comes first", engine.info().name) : found.error().message;
    }
    others.push_back({llama::engine_name(mode), std::move(reason)});
  }
  co_return others;
}

const llama::LaunchSettings* Engines::launch_of(const engine::Engine& engine) const {
  const Made& one = made(engine);
  return one.launch ? &*one.launch : nullptr;
}

const Engines::Made& Engines::made(const engine::Engine& engine) const {
  const auto found =
      std::ranges::find(engines_, &engine, [](const Made& one) { return one.engine.get(); });
  WERK_ASSERT(found != engines_.end());
  return *found;
}

}  // namespace werk::app
