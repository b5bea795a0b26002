#include "werk/engine/remote/stand_in.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "werk/base/digest.hpp"
#include "werk/base/text.hpp"

namespace werk::engine::remote {
namespace {

constexpr std::size_t kNamesShownMax = 8;

std::string names_of(const std::vector<PeerModel>& models) {
  std::vector<std::string> names;
  for (const PeerModel& model : models) {
    if (names.size() == kNamesShownMax) break;
    names.push_back(printable(model.id));
  }
  if (names.empty()) return "no model at all";
  return fmt::format("{}{}", fmt::join(names, ", "), models.size() > names.size() ? ", ..." : "");
}

}  // namespace

Result<PeerModel> choose_model(const StandInSettings& settings, const std::string& place,
                               const model::Manifest& manifest,
                               const std::vector<PeerModel>& models) {
  const auto named = [&](const std::string& id) {
    return std::ranges::find(models, id, &PeerModel::id);
  };
  if (settings.model) {
    if (const auto found = named(*settings.model); found != models.end()) return *found;
    return fail(
        ErrorCode::model_not_found, Origin::engine,
        fmt::format("{} names {}, which {} does not serve; it lists {}", settings.model_setting,
                    printable(*settings.model), place, names_of(models)));
  }
  if (const auto found = named(manifest.id); found != models.end()) return *found;
  for (const std::string& alias : manifest.aliases) {
    if (const auto found = named(alias); found != models.end()) return *found;
  }
  if (models.size() == 1) return models.front();
  return fail(ErrorCode::model_not_found, Origin::engine,
              fmt::format("{} serves no {}; it lists {}, and {} says which of them is meant", place,
                          printable(manifest.id), names_of(models), settings.model_setting));
}

StandIn::StandIn(async::Executor executor, async::Clock& clock, StandInSettings settings,
                 RemoteSettings remote)
    : settings_(std::move(settings)), remote_(std::move(executor), clock, std::move(remote)) {
  info_ = remote_.info();
  info_.name = settings_.engine;
  info_.pool = "remote";
  info_.formats = settings_.formats;
  info_.prefix_caching = PrefixCachingUse::theirs;
}

Result<StartPlan> StandIn::plan(const model::Manifest& manifest,
                                const std::filesystem::path& folder) const {
  StartPlan plan;
  plan.key.engine = info_.name;
  plan.key.manifest_identity = model::identity_of(manifest);
  // Two installed models with equal files may have two of the server's by their names.
  plan.key.options_digest = sha256_hex(
      fmt::format("{}\n{}\n{}", remote().url.text(), settings_.model.value_or(""), manifest.id));
  plan.manifest = manifest;
  plan.model_folder = folder;
  plan.arguments = {remote().url.text()};
  plan.slots = remote().parallel;
  return plan;
}

async::awaitable<Result<std::unique_ptr<Runtime>>> StandIn::start(StartPlan plan,
                                                                  StartObserver& observer,
                                                                  std::stop_token stop) {
  const Status looked = co_await remote_.look(stop);
  if (!looked) {
    Error error = looked.error();
    if (error.code != ErrorCode::cancelled) error.code = ErrorCode::start_failed;
    co_return fail(std::move(error));
  }
  const Result<PeerModel> chosen =
      choose_model(settings_, fmt::format("the {} at {}", settings_.engine, remote().url.place()),
                   plan.manifest, remote_.listing().models);
  if (!chosen) co_return fail(chosen.error());
  const model::Manifest theirs = remote_manifest(remote().name, *chosen);
  Result<StartPlan> inner = remote_.plan(theirs, {});
  if (!inner) co_return fail(inner.error());
  co_return co_await remote_.start(std::move(*inner), observer, stop);
}

async::awaitable<Result<std::size_t>> StandIn::look(std::stop_token stop) {
  const Status looked = co_await remote_.look(stop);
  if (!looked) co_return fail(looked.error());
  co_return remote_.listing().models.size();
}

}  // namespace werk::engine::remote
