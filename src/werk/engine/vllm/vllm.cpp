#include "werk/engine/vllm/vllm.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>

#include "werk/async/task_group.hpp"
#include "werk/base/log.hpp"
#include "werk/base/text.hpp"
#include "werk/engine/vllm/facts.hpp"
#include "werk/engine/vllm/launch.hpp"
#include "werk/model/store.hpp"
#include "werk/process/program.hpp"

namespace werk::engine::vllm {
namespace {

using async::Duration;

constexpr std::size_t kStatusBytesMax = 1024 * 1024;
constexpr std::chrono::seconds kProgressPause{1};
constexpr owned::LookPauses kPauses{std::chrono::milliseconds(5), std::chrono::milliseconds(250)};

// Werk's own looks at a running engine would fill its log.
bool is_own_look(std::string_view line) {
  return line.find("\"GET /health HTTP/1.1\" 200") != std::string_view::npos;
}

// The file that WERK_VLLM_LOG names, which goes on from start to start.
std::shared_ptr<std::ofstream> open_log(const std::optional<std::string>& path) {
  if (!path) return nullptr;
  auto file = std::make_shared<std::ofstream>(*path, std::ios::app);
  if (*file) return file;
  log::warn("WERK_VLLM_LOG names {}, which can't be written", *path);
  return nullptr;
}

std::string version_text(const std::string& version) {
  return version.empty() ? std::string("of unknown version") : version;
}

}  // namespace

EngineInfo info_of() {
  EngineInfo info;
  info.name = kEngineName;
  info.pool = kEngineName;
  info.formats = {std::string(kModelFormat)};
  info.overlap = Overlap::native;
  info.ownership = Ownership::owned;
  info.prefix_caching = PrefixCachingUse::on_request;
  info.summary = "vLLM, whose own scheduler overlaps any number of calls";
  return info;
}

struct VllmEngine::Launched : owned::Launching {
  Executable executable;
};

VllmEngine::VllmEngine(Services services, VllmSettings settings)
    : services_(std::move(services)),
      settings_(std::move(settings)),
      info_(info_of()),
      finder_({settings_.options.python, settings_.environment}, services_.children,
              services_.clock),
      client_(services_.executor, services_.clock, owned::status_profile()) {}

Result<StartPlan> VllmEngine::plan(const model::Manifest& manifest,
                                   const std::filesystem::path& folder) const {
  return plan_start(manifest, folder, settings_.options);
}

Masker VllmEngine::masker_for(const StartPlan& plan) const {
  Masker masker;
  const model::InstalledModel installed{plan.manifest, plan.model_folder};
  masker.hide(installed.weights_path().parent_path().string(), "<model>");
  masker.hide(settings_.home, "<home>");
  if (const auto user_home = process::variable_in(settings_.environment, "HOME"))
    masker.hide(*user_home, "~");
  masker.hide(services_.sockets.path(), "<sockets>");
  if (settings_.options.python) masker.hide(*settings_.options.python, "<python>");
  return masker;
}

async::awaitable<Result<Executable>> VllmEngine::executable_for(const StartPlan& plan,
                                                                std::stop_token stop) {
  auto executable = co_await finder_.find(stop);
  if (!executable && executable.error().code == ErrorCode::not_found) {
    log::error("{}: {}", plan.key.text(), executable.error().message);
    const Masker masker = masker_for(plan);
    co_return fail(ErrorCode::start_failed, masker.apply(executable.error().message));
  }
  if (!executable) co_return pass_on(executable);
  Status whole = co_await owned::verify_files(services_.offload, plan);
  if (!whole) co_return pass_on(whole);
  co_return executable;
}

Result<std::unique_ptr<VllmEngine::Launched>> VllmEngine::launch(StartPlan plan,
                                                                 Executable executable) {
  auto launched = std::make_unique<Launched>();
  launched->plan = std::move(plan);
  launched->executable = std::move(executable);
  launched->prepare(services_.sockets, info_.name, launched->plan.key, masker_for(launched->plan),
                    settings_.options.extra_arguments);
  launched->since = services_.clock.now();

  process::Command command;
  command.program = launched->executable.program;
  command.arguments = launched->executable.first_words;
  const std::vector<std::string> words = words_for(launched->plan, launched->executable.version);
  command.arguments.insert(command.arguments.end(), words.begin(), words.begin() + 2);
  command.arguments.insert(command.arguments.end(), {"--uds", launched->reach.socket});
  command.arguments.insert(command.arguments.end(), words.begin() + 2, words.end());
  command.environment = child_environment(settings_.environment, launched->reach.secret);
  command.guard = process::Guard::group;
  command.on_line = [name = launched->plan.key.text(), model = launched->plan.manifest.id,
                     masker = launched->log_masker, output = services_.output,
                     file = open_log(settings_.options.log)](std::string_view line) {
    if (is_own_look(line)) return;
    const std::string shown = masker.apply(line);
    log::debug("[{}] {}", name, printable(shown));
    if (output != nullptr) output->line(model, shown);
    if (file != nullptr) *file << shown << '\n' << std::flush;
  };
  const std::string line = shell_line(without_secrets(command.arguments));
  if (services_.output != nullptr) {
    services_.output->begin(launched->plan.manifest.id,
                            launched->log_masker.apply(fmt::format(
                                "vLLM {}: {} {}", version_text(launched->executable.version),
                                launched->executable.program, line)));
  }
  log::info("{}: starting vLLM {} for '{}': {} {}", launched->plan.key.text(),
            version_text(launched->executable.version), launched->plan.manifest.id,
            launched->executable.program, line);
  Status spawned = launched->spawn(services_.children, std::move(command));
  if (!spawned) return pass_on(spawned);
  return launched;
}

async::awaitable<Result<RuntimeFacts>> VllmEngine::come_up(Launched& launched,
                                                           std::stop_token race) {
  // Nothing is answered before the engine is up.
  Status healthy = co_await owned::wait_for_health(client_, services_.clock, services_.executor,
                                                   launched, kPauses, race);
  if (!healthy) co_return pass_on(healthy);
  const owned::Reach& reach = launched.reach;
  auto models =
      co_await client_.fetch(reach.address(), reach.get("/v1/models"), kStatusBytesMax, race);
  if (!models) co_return pass_on(models);
  const Result<ServedModel> served = check_serves(models->body, reach.alias);
  if (!served) co_return fail(served.error());
  RuntimeFacts facts;
  facts.slots = 0;
  facts.context_tokens_per_slot = served->context_tokens;
  facts.engine_version = launched.executable.version;
  if (facts.engine_version.empty()) {
    auto version =
        co_await client_.fetch(reach.address(), reach.get("/version"), kStatusBytesMax, race);
    if (version) facts.engine_version = version_in(version->body);
  }
  facts.pid = launched.child->pid();
  // What vLLM can't do with this model it refuses itself, and says why.
  facts.supports_images = true;
  co_return facts;
}

async::awaitable<void> VllmEngine::tell_progress(StartObserver& observer, std::stop_token done) {
  constexpr std::string_view kWhat = "vLLM is starting";
  while (true) {
    const bool slept =
        co_await async::sleep_for(services_.clock, services_.executor, kProgressPause, done);
    if (!slept) co_return;
    observer.progressed(kWhat);
  }
}

async::awaitable<Result<RuntimeFacts>> VllmEngine::bring_up(Launched& launched,
                                                            StartObserver& observer,
                                                            std::stop_token stop) {
  // Ends every wait of this start: the child's own end, the health time-out, or a stop from
  // outside.
  async::Deadline limit(services_.clock, settings_.options.health_timeout, stop);
  std::stop_source race;
  const auto end_race = [race]() mutable { race.request_stop(); };
  std::stop_callback outer(limit.token(), end_race);
  std::stop_source done;
  async::TaskGroup watchers(services_.executor);
  watchers.spawn(owned::stop_when_set(launched.child->exited(), race, done.get_token()));
  watchers.spawn(tell_progress(observer, done.get_token()));
  auto facts = co_await come_up(launched, race.get_token());
  done.request_stop();
  co_await watchers.join();
  if (facts) co_return facts;
  if (launched.child->exited().is_set()) co_return fail(exit_error(launched));

  process::Grace at_once{};
  at_once.term = Duration::zero();
  const std::string tail = launched.log_masker.apply(launched.child->output_tail());
  co_await launched.child->stop(at_once);
  if (stop.stop_requested()) co_return fail(ErrorCode::cancelled, "the start was stopped");
  if (limit.expired()) {
    facts.error().message =
        fmt::format("vLLM was not ready within {} s (WERK_VLLM_HEALTH_TIMEOUT_SECONDS)",
                    settings_.options.health_timeout.count());
  }
  log::error("{}: {}; the end of its output:\n{}", launched.plan.key.text(), facts.error().message,
             tail);
  facts.error().message = launched.masker.apply(facts.error().message);
  facts.error().origin = Origin::engine;
  // Whatever was wrong with its answers, it is a start that failed, and a later one may succeed.
  facts.error().code = ErrorCode::start_failed;
  co_return facts;
}

Error VllmEngine::exit_error(Launched& launched) const {
  const std::string how = launched.child->status()->text();
  const std::string tail = launched.child->output_tail();
  log::error("{}: vLLM ended during its start ({}); the end of its output:\n{}",
             launched.plan.key.text(), how, launched.log_masker.apply(tail));
  return start_failure(how, launched.masker.apply(tail));
}

async::awaitable<Result<std::unique_ptr<Runtime>>> VllmEngine::start(StartPlan plan,
                                                                     StartObserver& observer,
                                                                     std::stop_token stop) {
  if (stop.stop_requested()) co_return fail(ErrorCode::cancelled, "the start was stopped");
  auto executable = co_await executable_for(plan, stop);
  if (!executable) co_return pass_on(executable);
  auto launching = launch(std::move(plan), std::move(*executable));
  if (!launching) co_return pass_on(launching);
  const std::unique_ptr<Launched> launched = std::move(*launching);
  auto facts = co_await bring_up(*launched, observer, stop);
  if (!facts) {
    const bool printed = services_.output != nullptr && facts.error().code != ErrorCode::cancelled;
    if (printed) facts.error().message += output_hint(launched->plan.manifest.id);
    co_return pass_on(facts);
  }
  launched->child->note_shared_memory();
  const auto elapsed = services_.clock.now() - launched->since;
  log::info("{}: ready after {} ms (pid {}, contexts of at most {} tokens)",
            launched->plan.key.text(),
            std::chrono::duration_cast<std::chrono::milliseconds>(elapsed).count(),
            launched->child->pid(), facts->context_tokens_per_slot);
  std::unique_ptr<Runtime> runtime =
      std::make_unique<VllmRuntime>(*launched, std::move(*facts), client_, services_.clock);
  co_return runtime;
}

}  // namespace werk::engine::vllm
