// The JSON that the node says of itself and of its models. Pure: values in, text out; no secret, no
// path.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "werk/gateway/calls.hpp"
#include "werk/model/store.hpp"
#include "werk/routing/catalogue.hpp"
#include "werk/runtime/runtime_cache.hpp"

namespace werk::gateway {

struct NodeFacts {
  std::string version;
  std::int64_t pid = 0;
  std::chrono::system_clock::time_point started_at;
};

enum class Draining : std::uint8_t { no, yes };

// The dialect that a page is for.
enum class Speaks : std::uint8_t { openai, messages };

std::string models_page(const routing::Catalogue& catalogue, Speaks speaks);
std::string model_page(const model::InstalledModel& model, std::string_view name, Speaks speaks);

// What the runtime cache tells at one moment.
struct CacheState {
  std::vector<runtime::RuntimeSnapshot> runtimes;
  std::vector<runtime::PoolSnapshot> pools;
  std::vector<std::string> pins;  // model ids, loaded or not
  runtime::Waits waits;
};
CacheState state_of(const runtime::RuntimeCache& cache);

// What a process and its children have in memory; none where it can't be told.
using MemoryOf = std::function<std::optional<std::uint64_t>(int pid)>;

// What the node is at, besides its runtimes and calls.
struct NodeState {
  Draining draining = Draining::no;
  double uptime_s = 0;
  double loop_lag_s = 0;
  std::size_t connections = 0;
  std::uint64_t memory_bytes = 0;
  std::uint64_t open_files = 0;
  std::string not_ready;  // empty: it is ready
};

std::string observability_page(const NodeFacts& node, const NodeState& state,
                               const CacheState& cache, const Calls& calls,
                               const MemoryOf& memory_of);
std::string runtime_page(const runtime::RuntimeSnapshot& runtime, const MemoryOf& memory_of);

}  // namespace werk::gateway
