#include "werk/gateway/status_pages.hpp"

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/serialize.hpp>

#include "werk/base/text.hpp"
#include "werk/base/timestamp.hpp"
#include "werk/gateway/call_pages.hpp"

namespace werk::gateway {

namespace json = boost::json;

namespace {

// Seconds since 1970 of a manifest's "2026-11-29T22:44:02Z"; 0 where it has none.
std::int64_t unix_time(const std::string& text) {
  const auto time = time_of(text);
  return time ? static_cast<std::int64_t>(std::chrono::system_clock::to_time_t(*time)) : 0;
}

// Of a model elsewhere nothing is known but what its server tells.
json::object remote_model(const model::Manifest& manifest, std::string_view name) {
  json::object meta;
  for (const std::string_view unknown :
       {"format", "architecture", "quantization", "parameters", "training_context", "size_bytes"})
    meta[unknown] = nullptr;
  const std::uint64_t context = manifest.training_context_tokens;
  meta["context"] = context == 0 ? json::value(nullptr) : json::value(context);
  meta["remote"] = true;
  json::object object;
  object["id"] = name;
  object["object"] = "model";
  object["created"] = unix_time(manifest.imported_at);
  object["owned_by"] = model::remote_of(manifest);
  object["meta"] = std::move(meta);
  return object;
}

json::object openai_model(const model::Manifest& manifest, std::string_view name) {
  if (!model::remote_of(manifest).empty()) return remote_model(manifest, name);
  json::object meta;
  meta["format"] = manifest.format;
  meta["architecture"] = manifest.architecture;
  meta["quantization"] = manifest.quantization;
  meta["parameters"] = manifest.parameters;
  meta["training_context"] = manifest.training_context_tokens;
  meta["size_bytes"] = model::total_bytes(manifest);
  json::object object;
  object["id"] = name;
  object["object"] = "model";
  object["created"] = unix_time(manifest.imported_at);
  object["owned_by"] = "werk";
  object["meta"] = std::move(meta);
  return object;
}

json::object messages_model(const model::Manifest& manifest, std::string_view name) {
  json::object object;
  object["type"] = "model";
  object["id"] = name;
  object["display_name"] = manifest.name.empty() ? name : std::string_view(manifest.name);
  object["created_at"] =
      manifest.imported_at.empty() ? "1970-01-01T00:00:00Z" : manifest.imported_at;
  return object;
}

json::object model_object(const model::Manifest& manifest, std::string_view name, Speaks speaks) {
  return speaks == Speaks::messages ? messages_model(manifest, name) : openai_model(manifest, name);
}

template <class Number>
json::value optional_number(const std::optional<Number>& number) {
  return number ? json::value(*number) : json::value(nullptr);
}

json::value optional_text(const std::string& text) {
  return text.empty() ? json::value(nullptr) : json::value(printable(text));
}

json::value optional_time(std::chrono::system_clock::time_point time) {
  return time.time_since_epoch().count() == 0 ? json::value(nullptr) : json::value(timestamp(time));
}

json::object node_object(const NodeFacts& node, const NodeState& state) {
  json::object object;
  object["version"] = node.version;
  object["pid"] = node.pid;
  object["started_at"] = timestamp(node.started_at);
  object["draining"] = state.draining == Draining::yes;
  object["uptime_s"] = state.uptime_s;
  object["loop_lag_s"] = state.loop_lag_s;
  object["connections"] = state.connections;
  object["memory_bytes"] = state.memory_bytes;
  object["open_files"] = state.open_files;
  object["ready"] = state.not_ready.empty();
  object["not_ready"] = optional_text(state.not_ready);
  return object;
}

json::object pool_object(const runtime::PoolSnapshot& pool) {
  json::object object;
  object["name"] = pool.name;
  object["capacity"] = pool.capacity == 0 ? json::value(nullptr) : json::value(pool.capacity);
  object["resident"] = pool.resident;
  object["starting"] = pool.starting;
  object["pinned"] = pool.pinned;
  return object;
}

json::value optional_seconds(const std::optional<async::Duration>& duration) {
  return duration ? json::value(std::chrono::duration<double>(*duration).count())
                  : json::value(nullptr);
}

json::object runtime_object(const runtime::RuntimeSnapshot& runtime, const MemoryOf& memory_of) {
  const bool owned = runtime.ownership == engine::Ownership::owned;
  json::object slots;
  slots["total"] = optional_number(runtime.slots_total);
  slots["busy"] = runtime.slots_busy;
  json::object object;
  object["key"] = runtime.key;
  object["model"] = runtime.model;
  object["engine"] = runtime.engine;
  object["pool"] = runtime.pool;
  object["ownership"] = owned ? "owned" : "external";
  object["resident"] = owned ? json::value(true) : json::value(nullptr);
  object["state"] = runtime::name_of(runtime.state);
  object["pid"] = optional_number(runtime.pid);
  object["since"] = timestamp(runtime.since);
  object["slots"] = std::move(slots);
  object["waiting"] = runtime.waiting;
  object["last_error"] = optional_text(runtime.last_error);
  object["progress"] = optional_text(runtime.progress);
  object["pinned"] = runtime.pinned == runtime::Pinned::yes;
  object["last_used"] = optional_time(runtime.last_used);
  object["idle_timeout_s"] = optional_seconds(runtime.idle_timeout);
  object["memory_bytes"] =
      runtime.pid ? optional_number(memory_of(*runtime.pid)) : json::value(nullptr);
  object["load_seconds"] = optional_seconds(runtime.load_time);
  object["output_tokens_per_second"] = optional_number(runtime.output_per_second);
  object["calls"] = runtime.usage.calls;
  json::object tokens;
  const bool tells_cached =
      runtime.usage.tells_cached || runtime.ownership == engine::Ownership::owned;
  tokens["prompt_cached"] =
      tells_cached ? json::value(runtime.usage.prompt_tokens_cached) : json::value(nullptr);
  tokens["prompt_new"] = runtime.usage.prompt_tokens_new;
  tokens["output"] = runtime.usage.output_tokens;
  object["tokens"] = std::move(tokens);
  return object;
}

}  // namespace

std::string models_page(const routing::Catalogue& catalogue, Speaks speaks) {
  json::array data;
  for (const model::InstalledModel& model : catalogue.models()) {
    data.push_back(model_object(model.manifest, model.manifest.id, speaks));
    // A remote's models are many, and their longer names there for conflicts alone.
    if (!model::remote_of(model.manifest).empty()) continue;
    for (const std::string& alias : model.manifest.aliases) {
      data.push_back(model_object(model.manifest, alias, speaks));
    }
  }
  json::object page;
  if (speaks == Speaks::messages) {
    page["first_id"] = data.empty() ? json::value(nullptr) : data.front().at("id");
    page["last_id"] = data.empty() ? json::value(nullptr) : data.back().at("id");
    page["has_more"] = false;
  } else {
    page["object"] = "list";
  }
  page["data"] = std::move(data);
  return json::serialize(page);
}

std::string model_page(const model::InstalledModel& model, std::string_view name, Speaks speaks) {
  return json::serialize(model_object(model.manifest, name, speaks));
}

std::string runtime_page(const runtime::RuntimeSnapshot& runtime, const MemoryOf& memory_of) {
  return json::serialize(runtime_object(runtime, memory_of));
}

CacheState state_of(const runtime::RuntimeCache& cache) {
  return {cache.snapshot(), cache.pools(), cache.pins(), cache.waits()};
}

std::string observability_page(const NodeFacts& node, const NodeState& state,
                               const CacheState& cache, const Calls& calls,
                               const MemoryOf& memory_of) {
  json::array list;
  for (const runtime::RuntimeSnapshot& one : cache.runtimes)
    list.push_back(runtime_object(one, memory_of));
  json::array pools;
  for (const runtime::PoolSnapshot& one : cache.pools) pools.push_back(pool_object(one));
  const CallCounters& counters = calls.counters();
  json::object counts;
  counts["active"] = counters.active;
  counts["waiting"] = cache.waits.all();
  counts["served"] = counters.served;
  counts["failed"] = counters.failed;
  counts["cancelled"] = counters.cancelled;
  ActiveCalls active = active_calls(calls);
  json::object page;
  page["schema"] = 1;
  page["node"] = node_object(node, state);
  page["runtimes"] = std::move(list);
  page["pools"] = std::move(pools);
  page["pins"] = json::array(cache.pins.begin(), cache.pins.end());
  page["calls"] = std::move(counts);
  page["active_calls"] = std::move(active.list);
  page["active_calls_left_off"] = active.left_off;
  page["recent_calls"] = recent_calls(calls);
  return json::serialize(page);
}

}  // namespace werk::gateway
