// Whether the node can serve well right now, and if not, why: a loop that lags, a start or an
// engine that gives no sign of life. What /readyz and the observability page say; nothing is
// decided by it. Pure: values in, a reason out.
#pragma once

#include <optional>
#include <span>

#include "werk/async/clock.hpp"
#include "werk/base/error.hpp"
#include "werk/gateway/calls.hpp"
#include "werk/runtime/runtime_cache.hpp"

namespace werk::gateway {

// Zero: that cause doesn't count. A start or an engine that is silent for its own limit is given
// up; here it is told of at half of it.
struct ReadyLimits {
  async::Duration loop_lag = std::chrono::seconds(2);
  async::Duration silent_start = std::chrono::seconds(150);
  async::Duration silent_engine = std::chrono::seconds(300);
};

std::optional<Error> not_ready(const ReadyLimits& limits, async::Duration loop_lag,
                               std::span<const runtime::RuntimeSnapshot> runtimes,
                               const Calls& calls);

}  // namespace werk::gateway
