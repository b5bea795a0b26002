// InstalledModels: the store's models as the loop sees them, and beside them those of a source that
// no store holds. current() is a snapshot; it is read anew, off the loop, when the store's folder
// has changed, so models that come and go are seen without a restart. Owned by the app, loop thread
// only.
#pragma once

#include <filesystem>
#include <map>
#include <memory>
#include <string>

#include "werk/async/offload.hpp"
#include "werk/gateway/model_source.hpp"
#include "werk/model/store.hpp"
#include "werk/routing/catalogue.hpp"
#include "werk/routing/router.hpp"

namespace werk::gateway {

class InstalledModels {
 public:
  // `home` is where the store lies; both borrowed.
  InstalledModels(const model::Store& store, std::filesystem::path home, async::Offload& offload);

  // Borrowed; at most one, before the first call.
  void add(ModelSource& source) { source_ = &source; }

  // A store that cannot be read yields the last snapshot; the fault is logged.
  async::awaitable<std::shared_ptr<const routing::Catalogue>> current();
  // The way of a requested name in the newest snapshot, by the node's one router. It is worked out
  // once per name and snapshot, since planning digests the whole launch line. A name that nobody
  // has is asked of the source before it is refused.
  async::awaitable<Result<routing::SharedRoute>> route(const routing::Router& router,
                                                       std::string name);

 private:
  async::awaitable<void> read();
  void put_together();

  const model::Store& store_;
  std::filesystem::path folder_;
  async::Offload& offload_;
  ModelSource* source_ = nullptr;
  std::uint64_t source_version_ = 0;
  std::vector<model::InstalledModel> installed_;
  // Shared with calls that route by a snapshot while a newer one replaces it.
  std::shared_ptr<const routing::Catalogue> catalogue_;
  std::filesystem::file_time_type read_at_{};
  std::map<std::string, routing::SharedRoute> routes_;  // found in catalogue_ so far
};

}  // namespace werk::gateway
