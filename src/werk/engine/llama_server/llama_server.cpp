#include "werk/engine/llama_server/llama_server.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "werk/async/task_group.hpp"
#include "werk/base/log.hpp"
#include "werk/base/text.hpp"
#include "werk/engine/llama_server/activity.hpp"
#include "werk/engine/llama_server/facts.hpp"
#include "werk/engine/llama_server/runtime.hpp"
#include "werk/model/store.hpp"
#include "werk/process/program.hpp"

namespace werk::engine::llama_server {
namespace {

using async::Duration;

constexpr std::size_t kStatusBytesMax = 4 * 1024 * 1024;
constexpr std::chrono::seconds kActivityPause{1};
constexpr owned::LookPauses kPauses{std::chrono::milliseconds(1), std::chrono::milliseconds(20)};

std::int64_t milliseconds_in(Duration duration) {
  return std::chrono::duration_cast<std::chrono::milliseconds>(duration).count();
}

}  // namespace

EngineInfo info_of(Mode mode) {
  EngineInfo info;
  info.name = engine_name(mode);
  info.pool = "llama-server";
  info.formats = {"gguf"};
  info.overlap = Overlap::native;
  info.ownership = Ownership::owned;
  info.summary = mode == Mode::cpu
                     ? "llama-server (llama.cpp) on the processor"
                     : fmt::format("llama-server (llama.cpp) on a {} device", name_of(mode));
  return info;
}

struct LlamaServerEngine::Launched : owned::Launching {
  Executable executable;
};

LlamaServerEngine::LlamaServerEngine(Services services, LlamaServerSettings settings)
    : services_(std::move(services)),
      settings_(std::move(settings)),
      info_(info_of(settings_.launch.mode)),
      extra_sizing_(sizing_in(settings_.launch.options.extra_arguments)),
      client_(services_.executor, services_.clock, owned::status_profile()) {}

Result<StartPlan> LlamaServerEngine::plan(const model::Manifest& manifest,
                                          const std::filesystem::path& folder) const {
  return plan_start(manifest, folder, settings_.launch);
}

Masker LlamaServerEngine::masker_for(const StartPlan& plan, const Executable* executable) const {
  Masker masker;
  masker.hide(settings_.home, "<home>");
  if (const auto user_home = process::variable_in(settings_.environment, "HOME"))
    masker.hide(*user_home, "~");
  const model::InstalledModel installed{plan.manifest, plan.model_folder};
  for (const model::ManifestFile& file : plan.manifest.files) {
    const std::string shown = file.role == model::FileRole::projector ? "<projector>" : "<model>";
    masker.hide(installed.path_of(file).string(), shown);
  }
  const LlamaServerOptions& options = settings_.launch.options;
  if (options.chat_template) masker.hide(options.chat_template->path, "<template>");
  if (options.projector) masker.hide(options.projector->path, "<projector>");
  masker.hide(services_.sockets.path(), "<sockets>");
  if (executable != nullptr) masker.hide(executable->path, "llama-server");
  return masker;
}

async::awaitable<Result<Executable>> LlamaServerEngine::executable_for(const StartPlan& plan,
                                                                       std::stop_token stop) {
  auto executable = co_await services_.finder.find(settings_.launch.mode, stop);
  if (!executable && executable.error().code == ErrorCode::not_found) {
    log::error("{}: {}", plan.key.text(), executable.error().message);
    const Masker masker = masker_for(plan, nullptr);
    co_return fail(ErrorCode::start_failed, masker.apply(executable.error().message));
  }
  if (!executable) co_return pass_on(executable);
  Status whole = co_await owned::verify_files(services_.offload, plan);
  if (!whole) co_return pass_on(whole);
  co_return executable;
}

Result<std::unique_ptr<LlamaServerEngine::Launched>> LlamaServerEngine::launch(
    StartPlan plan, Executable executable) {
  auto words = words_for(plan, settings_.launch, executable);
  if (!words) return pass_on(words);
  auto launched = std::make_unique<Launched>();
  launched->plan = std::move(plan);
  launched->executable = std::move(executable);
  launched->prepare(services_.sockets, info_.name, launched->plan.key,
                    masker_for(launched->plan, &launched->executable),
                    settings_.launch.options.extra_arguments);
  launched->since = services_.clock.now();

  process::Command command;
  command.program = launched->executable.path;
  command.arguments = {"--host", launched->reach.socket};
  command.arguments.insert(command.arguments.end(), words->begin(), words->end());
  command.environment = child_environment(settings_.environment, launched->reach.secret,
                                          settings_.launch, launched->executable);
  command.on_line = [name = launched->plan.key.text(), model = launched->plan.manifest.id,
                     masker = launched->log_masker,
                     output = services_.output](std::string_view line) {
    log::debug("[{}] {}", name, printable(line));
    if (output != nullptr) output->line(model, masker.apply(line));
  };
  if (services_.output != nullptr) {
    services_.output->begin(
        launched->plan.manifest.id,
        launched->log_masker.apply(fmt::format(
            "llama-server {}: {} {}", launched->executable.version.text(),
            launched->executable.path, shell_line(without_secrets(command.arguments)))));
  }
  if (!said_sizing_ && (extra_sizing_.has_context || extra_sizing_.has_slots)) {
    said_sizing_ = true;
    log::info(
        "{}: WERK_LLAMA_ARGS (or llama_args, args) sizes llama-server itself; --ctx-size and "
        "--parallel give way to it",
        info_.name);
  }
  log::info("{}: starting llama-server {} for '{}': {} {}", launched->plan.key.text(),
            launched->executable.version.text(), launched->plan.manifest.id,
            launched->executable.path, shell_line(without_secrets(command.arguments)));
  Status spawned = launched->spawn(services_.children, std::move(command));
  if (!spawned) return pass_on(spawned);
  return launched;
}

async::awaitable<Result<RuntimeFacts>> LlamaServerEngine::come_up(Launched& launched,
                                                                  std::stop_token race) {
  Status healthy = co_await owned::wait_for_health(client_, services_.clock, services_.executor,
                                                   launched, kPauses, race);
  if (!healthy) co_return pass_on(healthy);
  const owned::Reach& reach = launched.reach;
  auto models =
      co_await client_.fetch(reach.address(), reach.get("/v1/models"), kStatusBytesMax, race);
  if (!models) co_return pass_on(models);
  Status serves = check_serves(models->body, reach.alias);
  if (!serves) co_return pass_on(serves);
  auto props = co_await client_.fetch(reach.address(), reach.get("/props"), kStatusBytesMax, race);
  if (!props) co_return pass_on(props);
  auto facts = parse_props(props->body);
  if (!facts) co_return pass_on(facts);
  const auto sized_by = [](bool extra) { return extra ? SizedBy::extra_arguments : SizedBy::plan; };
  Status sized = check_sizes(launched.plan, *facts, sized_by(extra_sizing_.has_slots),
                             sized_by(extra_sizing_.has_context));
  if (!sized) co_return pass_on(sized);
  facts->engine_version = launched.executable.version.text();
  facts->pid = launched.child->pid();
  co_return facts;
}

async::awaitable<void> LlamaServerEngine::watch_activity(Launched& launched,
                                                         StartObserver& observer,
                                                         std::stop_token done) {
  ActivityWatch watch;
  while (true) {
    const bool goes_on =
        co_await async::sleep_for(services_.clock, services_.executor, kActivityPause, done);
    if (!goes_on) break;
    const Activity now = activity_of(launched.child->pid(), launched.child->output_bytes());
    const auto what = watch.look(now);
    if (!what) continue;
    observer.progressed(fmt::format("{}, {} in memory", *what, readable_bytes(now.resident_bytes)));
  }
}

async::awaitable<Result<RuntimeFacts>> LlamaServerEngine::bring_up(Launched& launched,
                                                                   StartObserver& observer,
                                                                   std::stop_token stop) {
  // Ends every wait of this start: the child's own end, or a stop from outside.
  std::stop_source race;
  const auto end_race = [race]() mutable { race.request_stop(); };
  std::stop_callback outer(stop, end_race);
  std::stop_source done;
  async::TaskGroup watchers(services_.executor);
  watchers.spawn(owned::stop_when_set(launched.child->exited(), race, done.get_token()));
  watchers.spawn(watch_activity(launched, observer, done.get_token()));
  auto facts = co_await come_up(launched, race.get_token());
  done.request_stop();
  co_await watchers.join();
  // Made by now, if it will ever be, by an OpenMP that Werk loaded or the engine's own: a start
  // computes a first token.
  remove_openmp_mark(launched.child->pid());
  if (facts) co_return facts;
  if (launched.child->exited().is_set()) co_return fail(exit_error(launched));

  process::Grace at_once{};
  at_once.term = Duration::zero();
  const bool stopped = stop.stop_requested();
  const std::string tail = launched.log_masker.apply(launched.child->output_tail());
  co_await launched.child->stop(at_once);
  if (stopped) co_return fail(ErrorCode::cancelled, "the start was stopped");
  log::error("{}: {}; the end of its output:\n{}", launched.plan.key.text(), facts.error().message,
             tail);
  facts.error().message = launched.masker.apply(facts.error().message);
  // Whatever was wrong with its answers, it is a start that failed, and a later one may succeed.
  facts.error().code = ErrorCode::start_failed;
  co_return facts;
}

Error LlamaServerEngine::exit_error(Launched& launched) const {
  const std::string how = launched.child->status()->text();
  const std::string tail = launched.child->output_tail();
  log::error("{}: llama-server ended during its start ({}); the end of its output:\n{}",
             launched.plan.key.text(), how, launched.log_masker.apply(tail));
  std::optional<std::uint64_t> context_that_fits;
  if (settings_.launch.mode == Mode::cpu) {
    context_that_fits =
        largest_context(launched.plan.manifest, launched.plan.slots, memory_available_bytes());
  }
  return start_failure(how, launched.masker.apply(tail), launched.executable, context_that_fits);
}

async::awaitable<Result<std::unique_ptr<Runtime>>> LlamaServerEngine::start(StartPlan plan,
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
  log::info("{}: ready after {} ms (pid {}, {} slots of {} tokens)", launched->plan.key.text(),
            milliseconds_in(services_.clock.now() - launched->since), launched->child->pid(),
            facts->slots, facts->context_tokens_per_slot);
  std::unique_ptr<Runtime> runtime =
      std::make_unique<LlamaServerRuntime>(*launched, std::move(*facts), client_, services_.clock);
  co_return runtime;
}

}  // namespace werk::engine::llama_server
