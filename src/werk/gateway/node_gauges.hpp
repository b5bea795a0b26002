// What /metrics shows of this moment, from what the node's parts tell. Pure: values in, values out;
// labels come from states, engines and installed models alone.
#pragma once

#include "werk/gateway/status_pages.hpp"
#include "werk/telemetry/metrics_page.hpp"

namespace werk::gateway {

// Without the version, the calls and the process.
telemetry::Gauges node_gauges(const NodeState& node, const CacheState& cache,
                              const MemoryOf& memory_of);

}  // namespace werk::gateway
