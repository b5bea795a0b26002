// The JSON that the node says of itself and of its models. Pure: values in, text out; no secret, no
// path.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "werk/gateway/call.hpp"
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
  std::size_t waiting = 0;
};
CacheState state_of(const runtime::RuntimeCache& cache);

std::string observability_page(const NodeFacts& node, Draining draining, const CacheState& cache,
                               const CallCounters& calls);
std::string runtime_page(const runtime::RuntimeSnapshot& runtime);

// "2026-11-29T22:44:02Z"
std::string timestamp(std::chrono::system_clock::time_point time);

}  // namespace werk::gateway
