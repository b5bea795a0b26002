#include "werk/engine/llama_server/llama_server.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>

#include "werk/async/task_group.hpp"
#include "werk/base/digest.hpp"
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
constexpr std::size_t kSecretBytes = 24;
constexpr std::chrono::seconds kActivityPause{1};
// One look at the engine's state may hang while it loads; the start as a whole has the limits of
// whoever asked for it.
constexpr std::chrono::seconds kAttemptLimit{5};
constexpr std::chrono::milliseconds kPauseMin{1};
constexpr std::chrono::milliseconds kPauseMax{20};
constexpr int kPauseShare = 50;

// Looks come close together at first and at most a fiftieth of the elapsed time apart, so that
// waiting adds no more than that to a start, long or short.
Duration pause_after(Duration elapsed) {
  return std::clamp<Duration>(elapsed / kPauseShare, kPauseMin, kPauseMax);
}

// A fresh connection for each status call: the engine closes idle ones at its own times, and one
// that is kept open would hold up its end.
http::ClientProfile status_profile() {
  http::ClientProfile profile;
  profile.reuse = false;
  return profile;
}

async::awaitable<void> stop_when_set(async::Event& event, std::stop_source source,
                                     std::stop_token until) {
  const bool is_set = co_await event.wait(until);
  if (is_set) source.request_stop();
}

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

// An engine on its way up. Removes its socket's file unless it became a runtime.
struct LlamaServerEngine::Launched {
  StartPlan plan;
  Executable executable;
  Reach reach;
  Masker masker;      // for what leaves the node
  Masker log_masker;  // hides the key alone
  std::unique_ptr<process::Child> child;
  async::TimePoint since;

  ~Launched() {
    if (child != nullptr) unlink(reach.socket.c_str());
  }
};

LlamaServerEngine::LlamaServerEngine(Services services, LlamaServerSettings settings)
    : services_(std::move(services)),
      settings_(std::move(settings)),
      info_(info_of(settings_.launch.mode)),
      extra_sizing_(sizing_in(settings_.launch.options.extra_arguments)),
      client_(services_.executor, services_.clock, status_profile()) {}

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
  const model::InstalledModel installed{plan.manifest, plan.model_folder};
  const auto look = [&installed] { return model::verify(installed); };
  Status whole = co_await services_.offload.run(look);
  if (!whole) co_return pass_on(whole);
  co_return executable;
}

Result<std::unique_ptr<LlamaServerEngine::Launched>> LlamaServerEngine::launch(
    StartPlan plan, Executable executable) {
  auto words = words_for(plan, settings_.launch, executable);
  if (!words) return pass_on(words);
  auto launched = std::make_unique<Launched>();
  launched->reach.socket = services_.sockets.next_socket(info_.name);
  launched->reach.secret = random_hex(kSecretBytes);
  launched->reach.alias = plan.key.alias();
  launched->masker = masker_for(plan, &executable);
  launched->masker.hide(launched->reach.socket, "<socket>");
  launched->masker.hide(launched->reach.secret, "<key>");
  launched->log_masker.hide(launched->reach.secret, "<key>");
  for (const std::string& secret : secrets_in(settings_.launch.options.extra_arguments)) {
    launched->masker.hide(secret, "***");
    launched->log_masker.hide(secret, "***");
  }
  launched->since = services_.clock.now();

  process::Command command;
  command.program = executable.path;
  command.arguments = {"--host", launched->reach.socket};
  command.arguments.insert(command.arguments.end(), words->begin(), words->end());
  command.environment = child_environment(settings_.environment, launched->reach.secret);
  command.on_line = [name = plan.key.text(), model = plan.manifest.id,
                     masker = launched->log_masker,
                     output = services_.output](std::string_view line) {
    log::debug("[{}] {}", name, printable(line));
    if (output != nullptr) output->line(model, masker.apply(line));
  };
  if (services_.output != nullptr) {
    services_.output->begin(
        plan.manifest.id, launched->log_masker.apply(fmt::format(
                              "llama-server {}: {} {}", executable.version.text(), executable.path,
                              shell_line(without_secrets(command.arguments)))));
  }
  if (!said_sizing_ && (extra_sizing_.has_context || extra_sizing_.has_slots)) {
    said_sizing_ = true;
    log::info(
        "{}: WERK_LLAMA_ARGS (or llama_args, args) sizes llama-server itself; --ctx-size and "
        "--parallel give way to it",
        info_.name);
  }
  log::info("{}: starting llama-server {} for '{}': {} {}", plan.key.text(),
            executable.version.text(), plan.manifest.id, executable.path,
            shell_line(without_secrets(command.arguments)));
  // An engine refuses to bind where a file lies.
  unlink(launched->reach.socket.c_str());
  auto child = services_.children.spawn(std::move(command));
  if (!child) {
    log::error("{}: {}", plan.key.text(), child.error().message);
    const ErrorCode code =
        child.error().code == ErrorCode::draining ? ErrorCode::draining : ErrorCode::start_failed;
    return fail(code, launched->masker.apply(child.error().message));
  }
  launched->child = std::move(*child);
  launched->plan = std::move(plan);
  launched->executable = std::move(executable);
  return launched;
}

async::awaitable<Status> LlamaServerEngine::wait_for_health(Launched& launched,
                                                            std::stop_token race) {
  while (!race.stop_requested()) {
    async::Deadline deadline(services_.clock, kAttemptLimit, race);
    auto answer = co_await client_.fetch(launched.reach.address(), launched.reach.get("/health"),
                                         kStatusBytesMax, deadline.token());
    if (answer && answer->status == 200) co_return Status();
    const Duration elapsed = services_.clock.now() - launched.since;
    co_await async::sleep_for(services_.clock, services_.executor, pause_after(elapsed), race);
  }
  co_return fail(ErrorCode::cancelled, "the start was stopped");
}

async::awaitable<Result<RuntimeFacts>> LlamaServerEngine::come_up(Launched& launched,
                                                                  std::stop_token race) {
  Status healthy = co_await wait_for_health(launched, race);
  if (!healthy) co_return pass_on(healthy);
  const Reach& reach = launched.reach;
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
  watchers.spawn(stop_when_set(launched.child->exited(), race, done.get_token()));
  watchers.spawn(watch_activity(launched, observer, done.get_token()));
  auto facts = co_await come_up(launched, race.get_token());
  done.request_stop();
  co_await watchers.join();
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
  std::unique_ptr<Runtime> runtime = std::make_unique<LlamaServerRuntime>(
      std::move(launched->child), launched->reach, std::move(*facts), launched->masker, client_,
      services_.clock);
  co_return runtime;
}

}  // namespace werk::engine::llama_server
