#include "werk/app/commands/explain.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>

#include "werk/app/engines.hpp"
#include "werk/app/terminal.hpp"
#include "werk/async/loop.hpp"
#include "werk/async/task_group.hpp"
#include "werk/base/text.hpp"
#include "werk/engine/llama_server/activity.hpp"
#include "werk/engine/masker.hpp"
#include "werk/model/store.hpp"
#include "werk/process/program.hpp"
#include "werk/process/signals.hpp"

namespace werk::app {

namespace llama = engine::llama_server;

namespace {

// Home folders as a shell would write them, so that the text may be shown to others.
engine::Masker masker_for(const std::filesystem::path& home) {
  engine::Masker masker;
  const std::string user = process::own_variable("HOME").value_or("");
  masker.hide(user, "~");
  const bool below_user = !user.empty() && home.string().starts_with(user + "/");
  if (!below_user) masker.hide(home.string(), "$WERK_HOME");
  return masker;
}

std::string found_by(const model::InstalledModel& model, const Settings& settings,
                     std::string_view asked) {
  const model::Manifest& manifest = model.manifest;
  if (manifest.id == asked) return "its id";
  if (std::ranges::find(manifest.aliases, asked) != manifest.aliases.end()) return "its alias";
  const auto rule = std::ranges::find_if(
      settings.aliases, [&](const routing::AliasRule& one) { return routing::fits(one, asked); });
  if (rule == settings.aliases.end()) return "its alias";
  return fmt::format("by the alias {}", rule->pattern);
}

// Of an engine whose own rules Werk doesn't know: the weights, and what it keeps for one context.
llama::MemoryEstimate plain_memory(const engine::StartPlan& plan) {
  llama::MemoryEstimate memory;
  memory.weights_bytes = model::total_bytes(plan.manifest);
  const std::uint64_t token = model::kv_bytes_per_token(plan.manifest.shape);
  memory.kv_tokens = plan.context_tokens_per_slot;
  if (token > 0 && memory.kv_tokens > 0) memory.kv_bytes = token * memory.kv_tokens;
  memory.prompt_cache_bytes_max = 0;
  memory.key_type = memory.value_type = "f16";
  return memory;
}

// The parts that looking at engines takes; destroyed in reverse.
class Explainer {
 public:
  Explainer(const Settings& settings, const std::filesystem::path& home,
            process::SocketFolder& sockets, routing::Catalogue catalogue, std::string asked)
      : settings_(settings),
        home_(home),
        catalogue_(std::move(catalogue)),
        asked_(std::move(asked)),
        clock_(loop_.executor()),
        children_(loop_.executor(), clock_),
        tasks_(loop_.executor()),
        engines_({loop_.executor(), clock_, offload_, children_, sockets}, settings, home) {}

  Result<Explanation> run() {
    const process::SignalWatch signals(loop_.executor(), [this](int) { stop_.request_stop(); });
    tasks_.spawn(look());
    loop_.run_until([this] { return tasks_.running() == 0; });
    return std::move(result_);
  }

 private:
  async::awaitable<void> look() {
    Status prepared = co_await engines_.prepare(stop_.get_token());
    if (!prepared) {
      result_ = pass_on(prepared);
      co_return;
    }
    std::vector<model::InstalledModel> models = catalogue_.models();
    const auto more = co_await engines_.models_of_remotes(models, stop_.get_token());
    models.insert(models.end(), more.begin(), more.end());
    catalogue_ = routing::Catalogue(std::move(models));
    const routing::Router router(engines_.in_order(), settings_.aliases, engines_.of_models(),
                                 engines_.missing());
    Result<routing::Route> route = router.route(catalogue_, asked_);
    if (!route) {
      result_ = pass_on(route);
      co_return;
    }
    Result<Engines::LaunchLine> line = co_await engines_.launch_line(*route, stop_.get_token());
    if (!line) {
      result_ = pass_on(line);
      co_return;
    }
    std::vector<routing::Rejected> others =
        co_await engines_.others(*route->engine, stop_.get_token());
    result_ = explanation(*route, *line);
    result_->rejected.insert(result_->rejected.end(), others.begin(), others.end());
    const engine::Masker masker = masker_for(home_);
    for (routing::Rejected& one : result_->rejected) one.reason = masker.apply(one.reason);
  }

  Explanation explanation(const routing::Route& route, const Engines::LaunchLine& line) const {
    const model::Manifest& manifest = route.plan.manifest;
    const llama::LaunchSettings* launch = engines_.launch_of(*route.engine);
    const engine::Masker masker = masker_for(home_);
    Explanation it;
    it.asked = asked_;
    it.id = manifest.id;
    it.found_by = found_by(*catalogue_.find(manifest.id), settings_, asked_);
    it.engine = route.engine->info().name;
    it.version = line.version;
    it.rejected = route.rejected;
    it.key = route.plan.key.text();
    it.slots = route.plan.slots;
    it.context_tokens_per_slot = route.plan.context_tokens_per_slot;
    if (route.engine->info().ownership == engine::Ownership::external) {
      it.server = line.program;
      return it;
    }
    it.program = masker.apply(line.program);
    if (launch != nullptr) {
      it.parts = launch_parts(line.words, settings_, settings_of_model(settings_, manifest.id));
    } else if (it.engine == engine::vllm::kEngineName) {
      it.parts = vllm_parts(line.words, settings_);
      it.note = "it schedules calls itself; parallel and ctx_size have no effect on it";
    } else {
      it.parts = {{line.words, "the worker's program"}};
      it.note = "one call at a time; parallel has no effect on this engine";
    }
    for (LaunchPart& part : it.parts) {
      for (std::string& word : part.words) word = masker.apply(word);
      part.source = masker.apply(part.source);
    }
    it.memory = launch == nullptr ? plain_memory(route.plan)
                                  : llama::memory_of(route.plan, launch->options);
    it.machine_bytes = machine_memory_bytes();
    it.available_bytes = llama::memory_available_bytes();
    return it;
  }

  const Settings& settings_;
  const std::filesystem::path& home_;
  routing::Catalogue catalogue_;
  std::string asked_;
  async::Loop loop_;
  async::SteadyClock clock_;
  async::Offload offload_;
  process::Children children_;
  async::TaskGroup tasks_;
  std::stop_source stop_;
  Engines engines_;
  Result<Explanation> result_ = fail(ErrorCode::cancelled, "stopped");
};

}  // namespace

int explain_command(const CommandLine& line, const Settings& settings,
                    const std::filesystem::path& home) {
  Result<model::Listing> listing = model::Store(home).list();
  if (!listing) return failed(listing.error());
  Result<process::SocketFolder> sockets = process::SocketFolder::create(process::own_variable);
  if (!sockets) return failed(sockets.error());
  Explainer explainer(settings, home, *sockets, routing::Catalogue(std::move(listing->models)),
                      line.subject);
  const Result<Explanation> explained = explainer.run();
  if (!explained) return failed(explained.error());
  fmt::print("{}",
             line.json == Json::yes ? explain_json(*explained) + "\n" : explain_text(*explained));
  return 0;
}

}  // namespace werk::app
