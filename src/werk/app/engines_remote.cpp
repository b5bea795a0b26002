// The remotes among the engines: made from the settings, with the keys that the environment holds.
#include <fmt/format.h>

#include <algorithm>

#include "werk/app/engines.hpp"
#include "werk/base/log.hpp"
#include "werk/process/program.hpp"

namespace werk::app {

namespace remote = engine::remote;

std::vector<std::string> environment_without_keys(const Settings& settings) {
  std::vector<std::string> entries = process::own_environment();
  for (const RemoteEntry& one : settings.remotes) {
    if (!one.key_env) continue;
    std::erase_if(entries,
                  [&](const std::string& entry) { return entry.starts_with(*one.key_env + "="); });
  }
  return entries;
}

Status Engines::add_remotes() {
  for (const RemoteEntry& entry : settings_.remotes) {
    remote::RemoteSettings settings;
    settings.name = entry.name;
    settings.url = entry.url;
    settings.models = entry.models;
    settings.parallel = entry.parallel;
    settings.silence = entry.silence;
    settings.kind = entry.kind;
    if (entry.key_env) {
      settings.key_env = *entry.key_env;
      settings.key = process::own_variable(settings.key_env).value_or("");
      if (settings.key.empty()) {
        return fail(ErrorCode::invalid_request,
                    fmt::format("{}: remotes.{}.key_env names {}, which is not set in the "
                                "environment",
                                entry.source, entry.name, settings.key_env));
      }
    }
    auto made =
        std::make_unique<remote::RemoteEngine>(parts_.executor, parts_.clock, std::move(settings));
    remote::RemoteEngine* engine = made.get();
    if (entry.name == engine::vllm::kEngineName && vllm_is_remote()) {
      return fail(ErrorCode::invalid_request,
                  fmt::format("{}: remotes.vllm and WERK_VLLM_HOST can't both be; give the remote "
                              "another name",
                              entry.source));
    }
    engines_.push_back({{}, std::nullopt, nullptr, nullptr, std::move(made), engine});
  }
  if (!vllm_is_remote()) return {};
  // What it serves that isn't installed here is listed as any remote's.
  auto made = std::make_unique<remote::RemoteEngine>(parts_.executor, parts_.clock, vllm_remote());
  Made& one = engines_.emplace_back();
  one.remote = made.get();
  one.engine = std::move(made);
  return {};
}

std::vector<remote::RemoteEngine*> Engines::remotes() const {
  std::vector<remote::RemoteEngine*> remotes;
  for (const Made& made : engines_) {
    if (made.remote != nullptr) remotes.push_back(made.remote);
  }
  return remotes;
}

async::awaitable<std::vector<model::InstalledModel>> Engines::models_of_remotes(
    std::vector<model::InstalledModel> installed, std::stop_token stop) {
  std::vector<remote::RemoteListing> listings;
  for (remote::RemoteEngine* one : remotes()) {
    const Status looked = co_await one->look(stop);
    if (!looked) log::warn("{}", looked.error().message);
    listings.push_back(one->listing());
  }
  co_return remote::list_remotes(listings, installed);
}

}  // namespace werk::app
