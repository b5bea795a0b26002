#include "werk/engine/worker/worker_engine.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include "werk/base/digest.hpp"
#include "werk/base/log.hpp"
#include "werk/base/text.hpp"
#include "werk/engine/worker/worker_runtime.hpp"
#include "werk/model/store.hpp"
#include "werk/process/descriptor.hpp"
#include "werk/process/program.hpp"

namespace werk::engine::worker {
namespace {

constexpr int kChannelInWorker = 3;
constexpr std::size_t kTailBytesMax = 1200;
constexpr async::Duration kAtOnce = async::Duration::zero();

// Keys of ours and of hubs, and what would lead an interpreter elsewhere.
constexpr std::array<std::string_view, 6> kScrubbedHeads = {"WERK_",  "HF_",     "TRANSFORMERS_",
                                                            "PYTHON", "OPENAI_", "ANTHROPIC_"};

struct Channel {
  process::Descriptor ours;
  process::Descriptor theirs;
};

Result<Channel> open_channel() {
  std::array<int, 2> ends{};
  if (::socketpair(AF_UNIX, SOCK_STREAM, 0, ends.data()) != 0)
    return fail(ErrorCode::start_failed, fmt::format("no channel: {}", std::strerror(errno)));
  for (const int end : ends) ::fcntl(end, F_SETFD, FD_CLOEXEC);
  ::fcntl(ends[0], F_SETFL, O_NONBLOCK);
  return Channel{process::Descriptor(ends[0]), process::Descriptor(ends[1])};
}

}  // namespace

EngineInfo info_of(const WorkerKind& kind) {
  EngineInfo info;
  info.name = kind.name;
  info.pool = kind.name;
  info.formats = {std::string(kind.format)};
  info.overlap = Overlap::serialized;
  info.ownership = Ownership::owned;
  info.summary = kind.summary;
  return info;
}

std::vector<std::string> worker_environment(std::vector<std::string> own, int descriptor,
                                            std::optional<std::uint32_t> threads) {
  std::erase_if(own, [](const std::string& entry) {
    return std::ranges::any_of(kScrubbedHeads,
                               [&](std::string_view head) { return entry.starts_with(head); });
  });
  own.push_back(fmt::format("WERK_WORKER_FD={}", descriptor));
  for (const auto* entry :
       {"HF_HUB_OFFLINE=1", "TRANSFORMERS_OFFLINE=1", "HF_HUB_DISABLE_TELEMETRY=1",
        "TOKENIZERS_PARALLELISM=false", "PYTHONUNBUFFERED=1", "PYTHONNOUSERSITE=1"}) {
    own.emplace_back(entry);
  }
  if (threads) {
    for (const auto* name : {"OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"})
      own = process::with_variable(std::move(own), name, std::to_string(*threads));
  }
  return own;
}

WorkerEngine::WorkerEngine(const WorkerKind& kind, WorkerServices services, WorkerSettings settings)
    : kind_(kind),
      services_(std::move(services)),
      settings_(std::move(settings)),
      info_(info_of(kind)),
      interpreters_(kind, settings_.interpreter, services_.children, services_.clock) {}

WorkerEngine::~WorkerEngine() = default;

Result<StartPlan> WorkerEngine::plan(const model::Manifest& manifest,
                                     const std::filesystem::path& folder) const {
  StartPlan plan;
  plan.key.engine = info_.name;
  plan.key.manifest_identity = model::identity_of(manifest);
  plan.key.options_digest = sha256_hex(fmt::format(
      "interpreter={}\ndevice={}\ndtype={}\ncontext={}\n", settings_.interpreter.named.value_or(""),
      settings_.device, settings_.dtype, settings_.context_tokens));
  const std::uint64_t trained = manifest.training_context_tokens;
  if (trained > 0 && settings_.context_tokens > trained) {
    return fail(ErrorCode::model_unusable,
                fmt::format("{} was trained with a context of {} tokens; --ctx-size {} is more",
                            manifest.id, trained, settings_.context_tokens));
  }
  plan.manifest = manifest;
  plan.model_folder = folder;
  plan.arguments = {std::string(kind_.script)};
  plan.context_tokens_per_slot = settings_.context_tokens > 0 ? settings_.context_tokens : trained;
  return plan;
}

Masker WorkerEngine::masker_for(const StartPlan& plan) const {
  Masker masker;
  const model::InstalledModel installed{plan.manifest, plan.model_folder};
  masker.hide(installed.weights_path().parent_path().string(), "<model>");
  masker.hide(settings_.interpreter.home.string(), "<home>");
  masker.hide(settings_.programs.string(), "<workers>");
  if (const auto home = process::variable_in(settings_.interpreter.environment, "HOME"))
    masker.hide(*home, "~");
  return masker;
}

async::awaitable<Result<std::unique_ptr<Runtime>>> WorkerEngine::start(StartPlan plan,
                                                                       StartObserver& observer,
                                                                       std::stop_token stop) {
  const model::InstalledModel installed{plan.manifest, plan.model_folder};
  const auto verify = [&installed] { return model::verify(installed); };
  Status whole = co_await services_.offload.run(verify);
  if (!whole) co_return pass_on(whole);
  auto worker = co_await worker_for(plan, stop);
  if (!worker) co_return pass_on(worker);
  Result<RuntimeFacts> facts = co_await load(**worker, plan, observer, stop);
  if (!facts) {
    co_await end(std::move(*worker));
    co_return pass_on(facts);
  }
  Park park;
  if (settings_.keep == Keep::worker) {
    park = [this](std::unique_ptr<Worker> free) { parked_ = std::move(free); };
  }
  std::unique_ptr<Runtime> runtime =
      std::make_unique<WorkerRuntime>(std::move(*worker), std::move(*facts), plan.key.alias(),
                                      masker_for(plan), std::move(park), services_.executor);
  co_return runtime;
}

async::awaitable<Result<std::unique_ptr<Worker>>> WorkerEngine::worker_for(const StartPlan& plan,
                                                                           std::stop_token stop) {
  if (parked_) {
    std::unique_ptr<Worker> free = std::move(parked_);
    if (!free->end()) co_return free;
    co_await end(std::move(free));
  }
  Result<Interpreter> interpreter = co_await interpreters_.find(stop);
  if (!interpreter) {
    Error error = std::move(interpreter.error());
    if (error.code == ErrorCode::not_found) error.code = ErrorCode::start_failed;
    log::error("{}: {}", plan.key.text(), error.message);
    error.message = masker_for(plan).apply(error.message);
    co_return fail(std::move(error));
  }
  co_return launch(plan, *interpreter);
}

Result<std::unique_ptr<Worker>> WorkerEngine::launch(const StartPlan& plan,
                                                     const Interpreter& interpreter) {
  Result<Channel> channel = open_channel();
  if (!channel) return pass_on(channel);
  process::Command command;
  command.program = interpreter.path;
  command.arguments = {(settings_.programs / kind_.script).string()};
  command.environment =
      worker_environment(settings_.interpreter.environment, kChannelInWorker, settings_.threads);
  command.descriptors = {{channel->theirs.get(), kChannelInWorker}};
  command.on_line = [name = plan.key.text(), model = plan.manifest.id,
                     output = services_.output](std::string_view line) {
    log::debug("[{}] {}", name, printable(line));
    if (output != nullptr) output->line(model, line);
  };
  if (services_.output != nullptr) {
    services_.output->begin(plan.manifest.id,
                            fmt::format("{} {}: {} {}", kind_.package, interpreter.package_version,
                                        command.program, shell_line(command.arguments)));
  }
  log::info("{}: starting {} {} for '{}': {} {}", plan.key.text(), kind_.package,
            interpreter.package_version, plan.manifest.id, command.program,
            shell_line(command.arguments));
  auto child = services_.children.spawn(std::move(command));
  if (!child) {
    log::error("{}: {}", plan.key.text(), child.error().message);
    const ErrorCode code =
        child.error().code == ErrorCode::draining ? ErrorCode::draining : ErrorCode::start_failed;
    return fail(code, masker_for(plan).apply(child.error().message));
  }
  return std::make_unique<Worker>(services_.executor, services_.clock, std::move(*child),
                                  channel->ours.release(), settings_.cancel_limit);
}

async::awaitable<Result<RuntimeFacts>> WorkerEngine::load(Worker& worker, const StartPlan& plan,
                                                          StartObserver& observer,
                                                          std::stop_token stop) {
  Result<Hello> hello = co_await worker.hello(stop);
  if (!hello) co_return fail(explain(std::move(hello.error()), worker, plan));
  if (hello->protocol != kProtocolVersion || hello->engine != kind_.name) {
    co_return fail(
        ErrorCode::start_failed, Origin::engine,
        fmt::format("the program is a worker for {} with version {} of the protocol; "
                    "{} with version {} is needed",
                    printable(hello->engine), hello->protocol, kind_.name, kProtocolVersion));
  }
  observer.progressed("the worker runs");
  LoadOptions options;
  options.device = settings_.device;
  options.dtype = settings_.dtype;
  options.threads = settings_.threads;
  options.context_tokens = settings_.context_tokens;
  // Linked files lie where they belong to somebody else.
  const model::InstalledModel installed{plan.manifest, plan.model_folder};
  const std::string folder = installed.weights_path().parent_path().string();
  const auto message = [&](RequestId id) { return load_message(id, folder, options); };
  const Worker::Asked asked = worker.ask(Worker::Kind::load, message);
  while (true) {
    Result<FromWorker> answer = co_await worker.next(asked, stop);
    if (!answer) co_return fail(explain(std::move(answer.error()), worker, plan));
    if (const auto* progress = std::get_if<Progress>(&*answer)) observer.progressed(progress->what);
    if (auto* failed = std::get_if<Failed>(&*answer)) {
      co_return fail(explain(std::move(failed->error), worker, plan));
    }
    const auto* loaded = std::get_if<Loaded>(&*answer);
    if (loaded == nullptr) continue;
    RuntimeFacts facts;
    facts.context_tokens_per_slot = loaded->context_tokens;
    facts.engine_version = hello->engine_version;
    facts.pid = worker.child().pid();
    facts.supports_tools = loaded->takes_tools;
    facts.takes_later_system = loaded->takes_later_system;
    co_return facts;
  }
}

Error WorkerEngine::explain(Error error, Worker& worker, const StartPlan& plan) const {
  if (error.code == ErrorCode::cancelled) return error;
  const std::string tail = worker.child().output_tail();
  log::error("{}: {}; the end of its output:\n{}", plan.key.text(), error.message, tail);
  const Masker masker = masker_for(plan);
  error.message = masker.apply(error.message);
  if (worker.end() && !tail.empty()) {
    const std::string shown = masker.apply(tail);
    error.message += ": ";
    error.message += printable(
        trim(std::string_view(shown).substr(shown.size() - std::min(shown.size(), kTailBytesMax))));
  }
  // A start that failed may succeed later, unless the model itself is at fault.
  if (error.code != ErrorCode::model_unusable) error.code = ErrorCode::start_failed;
  if (services_.output != nullptr) error.message += output_hint(plan.manifest.id);
  return error;
}

async::awaitable<void> WorkerEngine::end(std::unique_ptr<Worker> worker) {
  co_await worker->stop(kAtOnce);
}

async::awaitable<void> WorkerEngine::shut_down() {
  if (!parked_) co_return;
  std::unique_ptr<Worker> free = std::move(parked_);
  co_await end(std::move(free));
}

}  // namespace werk::engine::worker
