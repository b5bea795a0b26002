#include "werk/app/node.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <optional>

#include "werk/app/engines.hpp"
#include "werk/app/own_node.hpp"
#include "werk/app/remote_models.hpp"
#include "werk/app/version.hpp"
#include "werk/async/loop.hpp"
#include "werk/base/log.hpp"
#include "werk/gateway/errors.hpp"
#include "werk/gateway/gateway.hpp"
#include "werk/http/server.hpp"
#include "werk/process/node_lock.hpp"
#include "werk/process/notify.hpp"
#include "werk/process/signals.hpp"

namespace werk::app {

namespace worker = engine::worker;

namespace {

using namespace std::chrono_literals;

constexpr auto kStopGrace = 5s;
constexpr auto kForAsLongAsItTakes = 24h;
constexpr auto kReadersLeave = 1s;  // whoever follows an engine's output, at the end

bool is_loopback(const std::string& host) {
  return host == "localhost" || host == "::1" || host.starts_with("127.");
}

std::string url_of(const http::Endpoint& endpoint) {
  const bool is_v6 = endpoint.host.find(':') != std::string::npos;
  return is_v6 ? fmt::format("http://[{}]:{}", endpoint.host, endpoint.port)
               : fmt::format("http://{}:{}", endpoint.host, endpoint.port);
}

Status check_exposure(const Settings& settings) {
  const bool open = settings.keys.empty() && settings.unauthenticated == Permission::no;
  if (is_loopback(settings.host) || !open) return {};
  return fail(ErrorCode::invalid_request,
              fmt::format("{} can be reached by others and no key is set: set WERK_API_KEY (or "
                          "WERK_API_KEYS), or say "
                          "--allow-unauthenticated",
                          settings.host));
}

// What of an engine's output isn't for others.
engine::Masker shown_masker(const std::filesystem::path& home,
                            const process::SocketFolder& sockets) {
  engine::Masker masker;
  masker.hide(home.string(), "<home>");
  if (const auto user_home = process::own_variable("HOME")) masker.hide(*user_home, "~");
  masker.hide(sockets.path(), "<sockets>");
  return masker;
}

// Calls beyond the bound are refused at once unless a wait is configured. Where none is kept, one
// worker serves all in order, however long that takes.
runtime::PoolRule worker_pool(const worker::WorkerKind& kind, std::size_t models,
                              const Settings& settings) {
  runtime::PoolRule rule;
  rule.setting = kind.cache_variable;
  rule.capacity = std::max<std::size_t>(models, 1);
  rule.capacity_wait = settings.capacity_wait.value_or(0ms);
  if (models == 0) {
    rule.retention = runtime::Retention::drop;
    rule.capacity_wait = kForAsLongAsItTakes;
  }
  return rule;
}

runtime::CacheSettings cache_settings(const Settings& settings) {
  runtime::CacheSettings cache;
  cache.pools["llama-server"].capacity = settings.max_resident;
  cache.pools.emplace(worker::kOnnxGenai.name,
                      worker_pool(worker::kOnnxGenai, settings.onnx_genai_models, settings));
  cache.pools.emplace(worker::kTransformers.name,
                      worker_pool(worker::kTransformers, settings.transformers_models, settings));
  if (settings.capacity_wait) cache.capacity_wait = *settings.capacity_wait;
  cache.start_timeout = settings.start_timeout;
  cache.stop_grace = kStopGrace;
  cache.idle_timeout = settings.idle_timeout;
  for (const ModelSettings& model : settings.models) {
    runtime::ModelRule rule;
    rule.pinned = model.pinned == Permission::yes ? runtime::Pinned::yes : runtime::Pinned::no;
    rule.idle_timeout = model.idle_timeout;
    cache.by_model.emplace(model.id, rule);
  }
  return cache;
}

gateway::GatewaySettings gateway_settings(const Settings& settings) {
  gateway::GatewaySettings gateway;
  gateway.access.keys = settings.keys;
  const bool guarded = settings.keys.empty() && settings.unauthenticated == Permission::no;
  gateway.access.host_check = guarded ? gateway::HostCheck::on : gateway::HostCheck::off;
  gateway.access.allowed_hosts = settings.allowed_hosts;
  gateway.chat.body_bytes_max = settings.body_bytes_max;
  gateway.chat.default_model = settings.model;
  gateway.chat.engine_silence = settings.silence_timeout;
  gateway.chat.early_headers = settings.early_headers;
  gateway.ready.silent_start = settings.start_timeout / 2;
  gateway.ready.silent_engine = settings.silence_timeout / 2;
  gateway.prompt_edits = settings.prompt_edits;
  for (const ModelSettings& model : settings.models) {
    for (const RequestDefault& one : model.defaults)
      gateway.chat.defaults[model.id].emplace_back(one.name, one.json);
  }
  gateway.node = {version(), ::getpid(), std::chrono::system_clock::now()};
  return gateway;
}

// The parts in the order in which they depend on one another; destroyed in reverse.
class Node {
 public:
  Node(const Settings& settings, const std::filesystem::path& home, process::SocketFolder& sockets,
       process::NodeLock& lock, const process::Notifier& notifier)
      : settings_(settings),
        lock_(lock),
        notifier_(notifier),
        clock_(loop_.executor()),
        children_(loop_.executor(), clock_),
        tasks_(loop_.executor()),
        shutdown_(loop_.executor()),
        output_(loop_.executor(), offload_, engine::OutputFiles(home / "logs"),
                shown_masker(home, sockets)),
        engines_({loop_.executor(), clock_, offload_, children_, sockets, &output_}, settings,
                 home),
        store_(home),
        models_(store_, home, offload_),
        loop_lag_(clock_),
        cache_(loop_.executor(), clock_, cache_settings(settings)),
        client_(loop_.executor(), clock_, {}),
        signals_(loop_.executor(), [this](int number) { on_signal(number); }) {
    children_.raise_descriptor_limit();
    cache_.set_sink(recorder_);
  }

  int run() {
    tasks_.spawn(live());
    loop_.run_until([this] { return tasks_.running() == 0; });
    return exit_status_;
  }

 private:
  async::awaitable<void> live() {
    Status started = co_await start();
    if (started) {
      co_await shutdown_.wait();
      co_await drain();
    } else {
      exit_status_ = 1;
      log::error("{}", started.error().message);
    }
    if (remotes_) co_await remotes_->end();
    cache_.begin_shutdown();
    co_await cache_.stopped();
    co_await engines_.shut_down();
    children_.begin_shutdown();
    const process::Grace grace{kStopGrace};
    co_await children_.stop_all(grace);
    co_await output_.close();
  }

  async::awaitable<Status> start() {
    Status prepared = co_await engines_.prepare(stop_.get_token());
    if (!prepared) co_return prepared;
    engines_.tell_persistence();
    router_.emplace(engines_.in_order(), settings_.aliases, engines_.of_models(),
                                 engines_.missing());
    std::optional<routing::Route> default_route;
    if (const auto remotes = engines_.remotes(); !remotes.empty()) {
      remotes_.emplace(loop_.executor(), clock_, remotes);
      models_.add(*remotes_);
      co_await remotes_->begin(stop_.get_token());
    }
    const auto catalogue = co_await models_.current();
    note_strangers(*catalogue);
    if (catalogue->models().empty())
      log::warn("no model is installed; `werk pull smollm2` or `werk import FILE` brings one");
    if (settings_.model) {
      Result<routing::Route> route = router_->route(*catalogue, *settings_.model);
      const bool may_come = !route && remotes_ && route.error().code == ErrorCode::model_not_found;
      if (may_come) log::warn("{}; a remote may have it later", route.error().message);
      if (!route && !may_come) co_return pass_on(route);
      if (route) default_route = std::move(*route);
    }
    const gateway::GatewayParts parts{clock_,  models_, *router_,  cache_,
                                      client_, output_, recorder_, loop_lag_};
    gateway_.emplace(gateway_settings(settings_), parts);
    server_.emplace(loop_.executor(), clock_, http::ServerLimits{}, *gateway_);
    server_->set_error_body(gateway::server_error_body);
    gateway_->set_connections([this] { return server_->connections(); });
    gateway_->set_on_stop([this] { shutdown_.set(); });
    Result<http::Endpoint> endpoint = server_->listen(settings_.host, settings_.port);
    if (!endpoint) co_return pass_on(endpoint);
    const std::string url = url_of(*endpoint);
    const auto now = std::chrono::system_clock::now().time_since_epoch();
    Status published = lock_.publish(
        {url, ::getpid(), std::chrono::duration_cast<std::chrono::seconds>(now).count()});
    if (!published) log::warn("{}", published.error().message);
    log::info("{} serves {} at {}", version_text(),
              settings_.model.value_or("every installed model"), url);
    if (default_route) {
      gateway_->set_not_ready(fmt::format("{} is being loaded", *settings_.model));
      tasks_.spawn(prepare_default(std::move(*default_route)));
    }
    for (const ModelSettings& model : settings_.models) {
      if (is_own_node()) break;
      if (model.pinned == Permission::yes && catalogue->find(model.id) != nullptr)
        tasks_.spawn(prepare_pinned(model.id));
    }
    notifier_.tell(fmt::format("READY=1\nSTATUS=serves {} at {}\n",
                               settings_.model.value_or("every installed model"), url));
    co_return Status();
  }

  // Settings of models that aren't there may be meant for later, or be mistyped.
  void note_strangers(const routing::Catalogue& catalogue) {
    for (const ModelSettings& model : settings_.models) {
      const model::InstalledModel* found = catalogue.find(model.id);
      if (found != nullptr && found->manifest.id == model.id) continue;
      const std::string at = settings_.file.at(model.line);
      if (found != nullptr) {
        log::warn("{}: \"{}\" is another name of {}; settings count for the id alone", at, model.id,
                  found->manifest.id);
      } else {
        log::warn("{}: the model \"{}\" is not installed; its settings count once it is", at,
                  model.id);
      }
    }
  }

  async::awaitable<void> prepare_pinned(std::string id) {
    Result<routing::SharedRoute> route = co_await models_.route(*router_, id);
    Error problem;
    if (route) {
      const Result<runtime::Lease> lease =
          co_await cache_.acquire(*(*route)->engine, (*route)->plan, stop_.get_token());
      if (lease) co_return;
      problem = lease.error();
    } else {
      problem = route.error();
    }
    log::warn("{} is pinned, but could not be loaded: {}", id, problem.message);
  }

  async::awaitable<void> prepare_default(routing::Route route) {
    const Result<runtime::Lease> lease =
        co_await cache_.acquire(*route.engine, route.plan, stop_.get_token());
    gateway_->set_not_ready(
        lease ? std::string()
              : fmt::format("{} could not be loaded: {}", *settings_.model, lease.error().message));
  }

  async::awaitable<void> drain() {
    notifier_.tell(fmt::format("STOPPING=1\nSTATUS=shuts down; {} call(s) may end\n",
                               gateway_->calls().active));
    log::info("shutting down: {} call(s) may take {:.0f} s to end; a second signal ends them now",
              gateway_->calls().active,
              std::chrono::duration<double>(settings_.drain_timeout).count());
    gateway_->begin_drain();
    server_->stop_keep_alive();
    cache_.begin_shutdown();
    async::Deadline limit(clock_, settings_.drain_timeout, stop_.get_token());
    constexpr auto kLook = 20ms;
    while (gateway_->calls().active > 0 && !limit.token().stop_requested() &&
           settings_.drain_timeout > 0ms) {
      co_await async::sleep_for(clock_, loop_.executor(), kLook, limit.token());
    }
    const std::uint64_t cut = gateway_->calls().active;
    if (cut > 0) log::warn("{} call(s) were cut off", cut);
    async::Deadline readers(clock_, kReadersLeave, stop_.get_token());
    co_await output_.end_followers(readers.token());
    co_await gateway_->end_followers(readers.token());
    co_await server_->close();
    cache_.stop_leased();
  }

  void on_signal(int number) {
    if (shutdown_.is_set()) {
      stop_.request_stop();
      return;
    }
    log::info("signal {}", number);
    shutdown_.set();
    if (!server_) stop_.request_stop();  // still starting
  }

  const Settings& settings_;
  process::NodeLock& lock_;
  const process::Notifier& notifier_;
  async::Loop loop_;
  async::SteadyClock clock_;
  async::Offload offload_;
  process::Children children_;
  async::TaskGroup tasks_;
  async::Event shutdown_;
  std::stop_source stop_;  // a second signal: nothing waits any more
  engine::OutputLogs output_;
  Engines engines_;
  model::Store store_;
  gateway::InstalledModels models_;
  telemetry::Recorder recorder_;
  async::LoopLag loop_lag_;
  runtime::RuntimeCache cache_;
  http::Client client_;
  std::optional<RemoteModels> remotes_;
  process::SignalWatch signals_;
  std::optional<routing::Router> router_;
  std::optional<gateway::Gateway> gateway_;
  std::optional<http::Server> server_;
  int exit_status_ = 0;
};

int cannot_start(const Error& error) {
  log::error("{}", error.message);
  log::stop();
  return 1;
}

}  // namespace

int serve(const Settings& settings, const std::filesystem::path& home) {
  const process::Notifier notifier = process::Notifier::take_from_environment();
  log::start(settings.log_level);
  for (const std::string& warning : settings.warnings) log::warn("{}", warning);
  Status exposed = check_exposure(settings);
  if (!exposed) return cannot_start(exposed.error());
  Result<process::NodeLock> lock = process::NodeLock::take(home.string());
  if (!lock) {
    const bool is_held = lock.error().code == ErrorCode::conflict;
    const int status = cannot_start(lock.error());
    return is_held && is_own_node() ? kHomeHeldStatus : status;
  }
  Result<process::SocketFolder> sockets = process::SocketFolder::create(process::own_variable);
  if (!sockets) return cannot_start(sockets.error());
  // What a killed import left may be as large as a model.
  model::Store(home).sweep();
  int status = 0;
  {
    Node node(settings, home, *sockets, *lock, notifier);
    status = node.run();
  }
  log::stop();
  return status;
}

}  // namespace werk::app
