// vLLM among the node's engines.
#include <fmt/format.h>

#include <algorithm>

#include "werk/app/engines.hpp"
#include "werk/base/log.hpp"
#include "werk/engine/vllm/launch.hpp"
#include "werk/process/program.hpp"

namespace werk::app {

namespace vllm = engine::vllm;

namespace {

vllm::VllmOptions vllm_options(const Settings& settings) {
  vllm::VllmOptions options;
  options.python = settings.vllm_python;
  options.extra_arguments = settings.vllm_arguments;
  options.health_timeout = std::chrono::seconds(settings.vllm_health_timeout_seconds);
  options.log = settings.vllm_log;
  if (settings.persistence == Permission::yes) options.prefix_caching = vllm::PrefixCaching::asked;
  return options;
}

}  // namespace

vllm::VllmEngine& Engines::add_vllm(std::string model) {
  vllm::VllmSettings settings;
  settings.options = vllm_options(settings_);
  settings.environment = environment_without_keys(settings_);
  settings.home = home_.string();
  const vllm::Services services{parts_.executor, parts_.clock,   parts_.offload,
                                parts_.children, parts_.sockets, parts_.output};
  auto made = std::make_unique<vllm::VllmEngine>(services, std::move(settings));
  vllm::VllmEngine& engine = *made;
  Made& one = engines_.emplace_back();
  one.model = std::move(model);
  one.engine = std::move(made);
  one.vllm = &engine;
  return engine;
}

bool Engines::vllm_is_remote() const {
  return settings_.vllm_host || settings_.vllm_port || settings_.vllm_model;
}

Status Engines::check_vllm_address() const {
  if (!vllm_is_remote() || (settings_.vllm_host && settings_.vllm_port)) return {};
  const std::string_view given = settings_.vllm_host   ? "WERK_VLLM_HOST"
                                 : settings_.vllm_port ? "WERK_VLLM_PORT"
                                                       : "WERK_VLLM_MODEL";
  const std::string_view missing = !settings_.vllm_host ? "WERK_VLLM_HOST" : "WERK_VLLM_PORT";
  return fail(ErrorCode::invalid_request,
              fmt::format("{} is set without {}: a vLLM elsewhere is reached by host and port",
                          given, missing));
}

engine::remote::RemoteSettings Engines::vllm_remote() const {
  engine::remote::RemoteSettings settings;
  settings.name = vllm::kEngineName;
  settings.url.host = *settings_.vllm_host;
  settings.url.port = *settings_.vllm_port;
  settings.kind = engine::remote::PeerKind::openai;
  return settings;
}

void Engines::add_vllm_stand_in(std::string model, std::vector<std::string> formats) {
  engine::remote::StandInSettings settings{std::string(vllm::kEngineName), std::move(formats),
                                           settings_.vllm_model, "WERK_VLLM_MODEL"};
  auto made = std::make_unique<engine::remote::StandIn>(parts_.executor, parts_.clock,
                                                        std::move(settings), vllm_remote());
  engine::remote::StandIn* engine = made.get();
  Made& one = engines_.emplace_back();
  one.model = std::move(model);
  one.engine = std::move(made);
  one.stand_in = engine;
}

async::awaitable<void> Engines::add_vllm_if_there(std::string model, std::stop_token stop) {
  if (vllm_is_remote()) {
    add_vllm_stand_in(std::move(model), {std::string(vllm::kModelFormat)});
    co_return;
  }
  vllm::VllmEngine& engine = add_vllm(std::move(model));
  const Result<vllm::Executable> found = co_await engine.look(stop);
  if (found) co_return;
  engines_.pop_back();
  if (!settings_.vllm_python) co_return;
  vllm_problem_ = found.error().message;
  log::warn("vLLM can't be used: {}", vllm_problem_);
}

vllm::VllmEngine* Engines::vllm() const {
  for (const Made& one : engines_) {
    if (one.vllm != nullptr && one.model.empty()) return one.vllm;
  }
  return nullptr;
}

async::awaitable<Result<Engines::LaunchLine>> Engines::vllm_line(vllm::VllmEngine& vllm,
                                                                 const routing::Route& route,
                                                                 std::stop_token stop) {
  Result<vllm::Executable> found = co_await vllm.look(stop);
  if (!found) co_return pass_on(found);
  std::vector<std::string> words = found->first_words;
  const std::vector<std::string> planned = vllm::words_for(route.plan, found->version);
  words.insert(words.end(), planned.begin(), planned.end());
  co_return LaunchLine{found->program, found->version.empty() ? "unknown" : found->version,
                       std::move(words)};
}

void Engines::tell_persistence() const {
  if (settings_.persistence == Permission::no) return;
  std::vector<std::string> without;
  for (const Made& one : engines_) {
    const engine::EngineInfo& info = one.engine->info();
    if (info.prefix_caching == engine::PrefixCachingUse::theirs) {
      log::info("--persistence: nothing is sent to {}, whose server decides about its prefixes",
                info.name);
    }
    const bool has_none = info.prefix_caching == engine::PrefixCachingUse::no_effect;
    if (has_none && std::ranges::find(without, info.name) == without.end())
      without.push_back(info.name);
  }
  if (!without.empty()) log::info("--persistence has no effect on {}", fmt::join(without, ", "));
}

}  // namespace werk::app
