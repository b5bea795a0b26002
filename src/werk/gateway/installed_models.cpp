#include "werk/gateway/installed_models.hpp"

#include <algorithm>
#include <iterator>

#include "werk/base/log.hpp"

namespace werk::gateway {

using Times = std::filesystem::file_time_type::clock;

// Aliases with a star reach a model by any number of names.
constexpr std::size_t kRoutesMax = 1024;

InstalledModels::InstalledModels(const model::Store& store, std::filesystem::path home,
                                 async::Offload& offload)
    : store_(store),
      folder_(std::move(home) / "models"),
      offload_(offload),
      catalogue_(std::make_shared<routing::Catalogue>(std::vector<model::InstalledModel>{})) {}

async::awaitable<std::shared_ptr<const routing::Catalogue>> InstalledModels::current() {
  // One look at the folder's time, which every change of the store moves: too cheap to leave the
  // loop for.
  std::error_code absent;
  const auto changed_at = std::filesystem::last_write_time(folder_, absent);
  // The time moves in ticks: a change that shares its tick with the one before would be missed, so
  // what is young is read again.
  const bool young = !absent && Times::now() - changed_at < std::chrono::seconds(1);
  if (!absent && (changed_at != read_at_ || young)) {
    co_await read();
    read_at_ = changed_at;
  }
  if (source_ != nullptr && source_->version() != source_version_) put_together();
  co_return catalogue_;
}

async::awaitable<Result<routing::SharedRoute>> InstalledModels::route(const routing::Router& router,
                                                                      std::string name) {
  std::shared_ptr<const routing::Catalogue> catalogue = co_await current();
  const auto known = routes_.find(name);
  if (known != routes_.end()) co_return known->second;
  if (source_ != nullptr && router.find(*catalogue, name) == nullptr) {
    co_await source_->look_for(name);
    catalogue = co_await current();
  }
  Result<routing::Route> found = router.route(*catalogue, name);
  if (!found) co_return pass_on(found);
  auto route = std::make_shared<const routing::Route>(std::move(*found));
  // Another call may have read a newer snapshot while this one waited.
  if (catalogue == catalogue_) {
    if (routes_.size() >= kRoutesMax) routes_.clear();
    routes_.emplace(std::move(name), route);
  }
  co_return route;
}

async::awaitable<void> InstalledModels::read() {
  const model::Store& store = store_;
  const auto work = [&store] { return store.list(); };
  Result<model::Listing> listing = co_await offload_.run(work);
  if (!listing) {
    log::error("the models can't be read: {}", listing.error().message);
    co_return;
  }
  for (const model::BrokenModel& broken : listing->broken) {
    log::warn("model {} is unusable: {}", broken.id, broken.error.message);
  }
  installed_ = std::move(listing->models);
  put_together();
}

void InstalledModels::put_together() {
  std::vector<model::InstalledModel> all = installed_;
  if (source_ != nullptr) {
    source_version_ = source_->version();
    std::vector<model::InstalledModel> more = source_->beside(installed_);
    std::ranges::move(more, std::back_inserter(all));
  }
  catalogue_ = std::make_shared<routing::Catalogue>(std::move(all));
  routes_.clear();
}

}  // namespace werk::gateway
