#include "werk/gateway/status_pages.hpp"

#include <fmt/chrono.h>

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/serialize.hpp>
#include <ctime>

#include "werk/base/text.hpp"

namespace werk::gateway {

namespace json = boost::json;

namespace {

// Seconds since 1970 of a manifest's "2026-11-29T22:44:02Z"; 0 where it has none.
std::int64_t unix_time(const std::string& text) {
  std::tm parts{};
  const char* end = ::strptime(text.c_str(), "%Y-%m-%dT%H:%M:%SZ", &parts);
  return end == nullptr ? 0 : static_cast<std::int64_t>(::timegm(&parts));
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

json::object pool_object(const runtime::PoolSnapshot& pool) {
  json::object object;
  object["name"] = pool.name;
  object["capacity"] = pool.capacity == 0 ? json::value(nullptr) : json::value(pool.capacity);
  object["resident"] = pool.resident;
  object["starting"] = pool.starting;
  object["pinned"] = pool.pinned;
  return object;
}

json::object runtime_object(const runtime::RuntimeSnapshot& runtime) {
  json::object slots;
  slots["total"] = optional_number(runtime.slots_total);
  slots["busy"] = runtime.slots_busy;
  json::object object;
  object["key"] = runtime.key;
  object["model"] = runtime.model;
  object["engine"] = runtime.engine;
  object["state"] = runtime::name_of(runtime.state);
  object["pid"] = optional_number(runtime.pid);
  object["since"] = timestamp(runtime.since);
  object["slots"] = std::move(slots);
  object["waiting"] = runtime.waiting;
  object["last_error"] = optional_text(runtime.last_error);
  object["progress"] = optional_text(runtime.progress);
  object["pinned"] = runtime.pinned == runtime::Pinned::yes;
  object["last_used"] = optional_time(runtime.last_used);
  const auto idle = runtime.idle_timeout;
  object["idle_timeout_s"] =
      idle ? json::value(std::chrono::duration<double>(*idle).count()) : json::value(nullptr);
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

std::string timestamp(std::chrono::system_clock::time_point time) {
  return fmt::format("{:%Y-%m-%dT%H:%M:%SZ}",
                     fmt::gmtime(std::chrono::system_clock::to_time_t(time)));
}

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

std::string runtime_page(const runtime::RuntimeSnapshot& runtime) {
  return json::serialize(runtime_object(runtime));
}

CacheState state_of(const runtime::RuntimeCache& cache) {
  return {cache.snapshot(), cache.pools(), cache.pins(), cache.waiting()};
}

std::string observability_page(const NodeFacts& node, Draining draining, const CacheState& cache,
                               const CallCounters& calls) {
  json::object node_object;
  node_object["version"] = node.version;
  node_object["pid"] = node.pid;
  node_object["started_at"] = timestamp(node.started_at);
  node_object["draining"] = draining == Draining::yes;
  json::array list;
  for (const runtime::RuntimeSnapshot& one : cache.runtimes) list.push_back(runtime_object(one));
  json::array pools;
  for (const runtime::PoolSnapshot& one : cache.pools) pools.push_back(pool_object(one));
  json::object counts;
  counts["active"] = calls.active;
  counts["waiting"] = cache.waiting;
  counts["served"] = calls.served;
  counts["failed"] = calls.failed;
  counts["cancelled"] = calls.cancelled;
  json::object page;
  page["schema"] = 1;
  page["node"] = std::move(node_object);
  page["runtimes"] = std::move(list);
  page["pools"] = std::move(pools);
  page["pins"] = json::array(cache.pins.begin(), cache.pins.end());
  page["calls"] = std::move(counts);
  return json::serialize(page);
}

}  // namespace werk::gateway
