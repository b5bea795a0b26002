#include "werk/engine/remote/remote_engine.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "werk/base/digest.hpp"
#include "werk/base/text.hpp"
#include "werk/engine/remote/remote_runtime.hpp"

namespace werk::engine::remote {
namespace {

constexpr std::size_t kNamesShownMax = 5;
constexpr std::string_view kWerk = "werk";  // whose models a Werk says its own are

// A failed start is refused as one that may succeed later, with the peer's own words.
Error not_started(Error error) {
  const bool stays = error.code == ErrorCode::cancelled || error.code == ErrorCode::model_not_found;
  if (!stays) error.code = ErrorCode::start_failed;
  return error;
}

Error not_listed(const std::string& peer, const std::string& id,
                 const std::vector<PeerModel>& models) {
  std::vector<std::string> names;
  for (const PeerModel& model : models) {
    if (names.size() == kNamesShownMax) break;
    names.push_back(printable(model.id));
  }
  const std::string lists = names.empty()
                                ? "no model at all"
                                : fmt::format("{}{}", fmt::join(names, ", "),
                                              models.size() > names.size() ? ", ..." : "");
  return {ErrorCode::model_not_found,
          fmt::format("{} does not serve {}; it lists {}", peer, printable(id), lists),
          Origin::engine};
}

}  // namespace

EngineInfo info_of(const RemoteSettings& settings) {
  EngineInfo info;
  info.name = format_of(settings.name);
  info.pool = "remote";
  info.formats = {format_of(settings.name)};
  info.overlap = Overlap::native;
  info.ownership = Ownership::external;
  info.prefix_caching = PrefixCachingUse::theirs;
  info.summary = fmt::format("the server at {}", settings.url.text());
  return info;
}

RemoteEngine::RemoteEngine(async::Executor executor, async::Clock& clock, RemoteSettings settings)
    : peer_(executor, clock, std::move(settings)),
      executor_(executor),
      clock_(clock),
      tasks_(std::move(executor)) {
  info_ = info_of(peer_.settings());
  for (const std::string& id : peer_.settings().models) {
    PeerModel model;
    model.id = id;
    models_.push_back(std::move(model));
  }
}

Result<StartPlan> RemoteEngine::plan(const model::Manifest& manifest,
                                     const std::filesystem::path& folder) const {
  const RemoteSettings& remote = settings();
  if (manifest.format != info_.formats.front()) {
    return fail(ErrorCode::model_unusable,
                fmt::format("{} serves only its own models", peer_.text()));
  }
  StartPlan plan;
  plan.key.engine = info_.name;
  plan.key.manifest_identity = sha256_hex(fmt::format("{}\n{}", info_.name, manifest.name));
  plan.key.options_digest = sha256_hex(remote.url.text());
  plan.manifest = manifest;
  plan.model_folder = folder;
  plan.arguments = {remote.url.text()};
  plan.slots = remote.parallel;
  plan.context_tokens_per_slot = manifest.training_context_tokens;
  return plan;
}

async::awaitable<Result<std::unique_ptr<Runtime>>> RemoteEngine::start(StartPlan plan,
                                                                       StartObserver& observer,
                                                                       std::stop_token stop) {
  observer.progressed(fmt::format("asking {}", settings().url.place()));
  Result<PeerModel> model = co_await find(plan.manifest.name, stop);
  if (!model) co_return fail(not_started(std::move(model.error())));
  RemoteFacts facts;
  facts.model = model->id;
  facts.runtime.slots = plan.slots;
  facts.runtime.context_tokens_per_slot = model->context_tokens;
  // Whether it can is for the peer to say, call by call.
  facts.runtime.supports_images = true;
  facts.counts_chat = model->owned_by == "llamacpp";
  facts.tokenizes = model->owned_by == "vllm";
  const PeerKind kind = settings().kind;
  if (kind == PeerKind::werk || (kind == PeerKind::unknown && model->owned_by == kWerk)) {
    auto slots = co_await peer_.slots_of(model->id, stop);
    if (!slots && (kind == PeerKind::werk || slots.error().code == ErrorCode::cancelled))
      co_return fail(not_started(std::move(slots.error())));
    if (slots) {
      facts.runtime.native_slots = *slots;
      facts.is_werk = true;
    }
  }
  std::unique_ptr<Runtime> runtime =
      std::make_unique<RemoteRuntime>(peer_, std::move(facts), clock_, tasks_, executor_);
  co_return runtime;
}

// The exact id; of a peer that serves but one, that one. A peer without a list is believed to serve
// what the settings say.
async::awaitable<Result<PeerModel>> RemoteEngine::find(std::string id, std::stop_token stop) {
  const Result<std::vector<PeerModel>> models = co_await peer_.models(stop);
  if (!models) {
    const bool has_no_list = models.error().code == ErrorCode::not_found;
    if (discovers() || !has_no_list) co_return fail(models.error());
    PeerModel believed;
    believed.id = std::move(id);
    co_return believed;
  }
  const auto found = std::ranges::find(*models, id, &PeerModel::id);
  if (found != models->end()) co_return *found;
  if (!discovers() && models->size() == 1) co_return models->front();
  co_return fail(not_listed(peer_.text(), id, *models));
}

async::awaitable<Status> RemoteEngine::look(std::stop_token stop) {
  Result<std::vector<PeerModel>> models = co_await peer_.models(stop);
  if (!models) co_return fail(models.error());
  if (discovers()) {
    std::erase_if(
        *models, [](const PeerModel& model) { return model.place == PeerModel::Place::elsewhere; });
    models_ = std::move(*models);
    co_return Status();
  }
  for (PeerModel& known : models_) {
    const auto found = std::ranges::find(*models, known.id, &PeerModel::id);
    if (found != models->end()) known = *found;
  }
  co_return Status();
}

async::awaitable<void> RemoteEngine::shut_down() { co_await tasks_.join(); }

}  // namespace werk::engine::remote
