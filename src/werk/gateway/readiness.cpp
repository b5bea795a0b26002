#include "werk/gateway/readiness.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <string>

namespace werk::gateway {

namespace {

double seconds(async::Duration duration) { return std::chrono::duration<double>(duration).count(); }

bool passed(async::Duration value, async::Duration limit) {
  return limit > async::Duration::zero() && value >= limit;
}

struct Silence {
  std::size_t calls = 0;
  async::TimePoint last_life{};
  std::string model;
};

// The engines that work on calls, by runtime, and when they said something last.
std::map<std::string, Silence> working(const Calls& calls) {
  std::map<std::string, Silence> all;
  for (const Call* call : calls.active()) {
    const bool with_engine =
        call->phase() == Call::Phase::prompt || call->phase() == Call::Phase::generating;
    if (!with_engine) continue;
    Silence& silence = all[call->runtime_key()];
    ++silence.calls;
    silence.last_life = std::max(silence.last_life, call->last_life());
    silence.model = call->shown_model();
  }
  return all;
}

}  // namespace

std::optional<Error> not_ready(const ReadyLimits& limits, async::Duration loop_lag,
                               std::span<const runtime::RuntimeSnapshot> runtimes,
                               const Calls& calls) {
  if (passed(loop_lag, limits.loop_lag)) {
    return Error{ErrorCode::capacity,
                 fmt::format("the node lags: something held its loop for {:.1f} s within the last "
                             "10 s",
                             seconds(loop_lag))};
  }
  for (const runtime::RuntimeSnapshot& one : runtimes) {
    if (!one.silent_start || !passed(*one.silent_start, limits.silent_start)) continue;
    return Error{ErrorCode::start_failed,
                 fmt::format("{} starts and has made no progress for {:.0f} s", one.model,
                             seconds(*one.silent_start)),
                 Origin::engine};
  }
  for (const auto& [key, silence] : working(calls)) {
    const async::Duration silent_for = calls.now() - silence.last_life;
    if (!passed(silent_for, limits.silent_engine)) continue;
    return Error{
        ErrorCode::capacity,
        fmt::format("the engine of {} works on {} call(s) and has said nothing for {:.0f} s",
                    silence.model, silence.calls, seconds(silent_for)),
        Origin::engine};
  }
  return std::nullopt;
}

}  // namespace werk::gateway
