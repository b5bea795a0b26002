#include "werk/gateway/node_gauges.hpp"

namespace werk::gateway {

telemetry::Gauges node_gauges(const NodeState& node, const CacheState& cache,
                              const MemoryOf& memory_of) {
  using State = runtime::RuntimeState;
  telemetry::Gauges gauges;
  gauges.loop_lag_seconds = node.loop_lag_s;
  gauges.connections = node.connections;
  gauges.ready = node.not_ready.empty();
  gauges.waiting = {
      {"place", cache.waits.place}, {"load", cache.waits.load}, {"slot", cache.waits.slot}};
  for (const State state : {State::starting, State::ready, State::closing, State::stopping})
    gauges.runtime_states[std::string(runtime::name_of(state))] = 0;
  for (const runtime::RuntimeSnapshot& one : cache.runtimes) {
    if (one.state == State::absent) continue;
    ++gauges.runtime_states[std::string(runtime::name_of(one.state))];
    telemetry::Gauges::OfRuntimes& sums = gauges.runtimes[{one.engine, one.model}];
    if (one.slots_total) sums.slots = sums.slots.value_or(0) + *one.slots_total;
    sums.slots_busy += one.slots_busy;
    if (!one.pid) continue;
    if (const auto bytes = memory_of(*one.pid))
      sums.memory_bytes = sums.memory_bytes.value_or(0) + *bytes;
  }
  return gauges;
}

}  // namespace werk::gateway
