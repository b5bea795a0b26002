// ModelSource: models that lie in no store and can be routed to all the same, such as those that
// servers elsewhere have. The gateway lists them beside the installed ones and asks the source
// before it refuses a name. Owned by the app, which knows where they come from; loop thread only.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "werk/async/awaitable.hpp"
#include "werk/model/store.hpp"

namespace werk::gateway {

class ModelSource {
 public:
  virtual ~ModelSource() = default;
  // Another number whenever beside() would tell something else; never 0.
  virtual std::uint64_t version() const = 0;
  // What to list beside these, under names that none of them has.
  virtual std::vector<model::InstalledModel> beside(
      const std::vector<model::InstalledModel>& installed) const = 0;
  // Somebody asked for a name that nobody has: looks anew where that may help. Bounded to seconds,
  // and at once where it looked a moment ago.
  virtual async::awaitable<void> look_for(std::string name) = 0;
};

}  // namespace werk::gateway
