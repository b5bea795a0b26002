#include "werk/app/top/report.hpp"

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/serialize.hpp>

namespace werk::app::top {

namespace json = boost::json;

namespace {

template <class Value>
json::value known(const std::optional<Value>& value) {
  return value ? json::value(*value) : json::value(nullptr);
}

json::value known(const std::string& text) {
  return text.empty() ? json::value(nullptr) : json::value(text);
}

json::object object_of(const NodeFacts& node) {
  return {{"version", known(node.version)},
          {"pid", known(node.pid)},
          {"started_at", known(node.started_at)},
          {"uptime_s", known(node.uptime_s)},
          {"draining", node.draining},
          {"ready", known(node.ready)},
          {"not_ready", known(node.not_ready)},
          {"loop_lag_s", known(node.loop_lag_s)},
          {"connections", known(node.connections)},
          {"memory_bytes", known(node.memory_bytes)},
          {"open_files", known(node.open_files)}};
}

json::object object_of(const Totals& totals, const CallCounts& counts) {
  return {{"slots", known(totals.slots)},
          {"slots_busy", totals.slots_busy},
          {"engine_memory_bytes", known(totals.memory_bytes)},
          {"output_tokens_per_second", known(totals.output_tokens_per_second)},
          {"cached_share", known(totals.cached_share)},
          {"calls_active", known(counts.active)},
          {"calls_waiting", known(counts.waiting)},
          {"calls_served", known(counts.served)},
          {"calls_failed", known(counts.failed)},
          {"calls_cancelled", known(counts.cancelled)}};
}

json::object object_of(const Pool& pool) {
  return {{"name", known(pool.name)},
          {"capacity", known(pool.capacity)},
          {"resident", known(pool.resident)},
          {"starting", known(pool.starting)},
          {"pinned", known(pool.pinned)}};
}

void add(json::object& object, const Tokens& tokens) {
  object["prompt_tokens"] = known(tokens.prompt);
  object["cached_tokens"] = known(tokens.cached);
  object["output_tokens"] = known(tokens.output);
  object["cached_share"] = known(cached_share(tokens));
}

json::object object_of(const Runtime& runtime) {
  json::object object = {{"key", known(runtime.key)},
                         {"model", known(runtime.model)},
                         {"engine", known(runtime.engine)},
                         {"state", known(runtime.state)},
                         {"progress", known(runtime.progress)},
                         {"last_error", known(runtime.last_error)},
                         {"slots", known(runtime.slots_total)},
                         {"slots_busy", known(runtime.slots_busy)},
                         {"waiting", known(runtime.waiting)},
                         {"calls", known(runtime.calls)},
                         {"pinned", runtime.pinned},
                         {"pool", known(runtime.pool)},
                         {"ownership", known(runtime.ownership)},
                         {"resident", known(runtime.resident)},
                         {"pid", known(runtime.pid)},
                         {"memory_bytes", known(runtime.memory_bytes)},
                         {"load_seconds", known(runtime.load_seconds)},
                         {"since", known(runtime.since)},
                         {"last_used", known(runtime.last_used)},
                         {"idle_timeout_s", known(runtime.idle_timeout_s)}};
  add(object, runtime.tokens);
  object["output_tokens_per_second"] = known(runtime.output_tokens_per_second);
  return object;
}

json::object object_of(const ActiveCall& call) {
  json::object object = {{"id", known(call.id)},           {"dialect", known(call.dialect)},
                         {"route", known(call.route)},     {"model", known(call.model)},
                         {"runtime", known(call.runtime)}, {"phase", known(call.phase)},
                         {"client", known(call.client)},   {"stream", known(call.stream)},
                         {"age_s", known(call.age_s)},     {"phase_s", known(call.phase_s)}};
  add(object, call.tokens);
  object["output_tokens_per_second"] = known(tokens_per_second(call));
  return object;
}

json::object object_of(const EndedCall& call) {
  json::object object = {{"id", known(call.id)},
                         {"dialect", known(call.dialect)},
                         {"route", known(call.route)},
                         {"model", known(call.model)},
                         {"outcome", known(call.outcome)},
                         {"status", known(call.status)},
                         {"cause", known(call.cause)},
                         {"ended_at", known(call.ended_at)},
                         {"load_s", known(call.load_s)},
                         {"wait_s", known(call.wait_s)},
                         {"first_byte_s", known(call.first_byte_s)},
                         {"total_s", known(call.total_s)}};
  add(object, call.tokens);
  object["output_tokens_per_second"] = known(tokens_per_second(call));
  return object;
}

template <class Items>
json::array array_of(const Items& items) {
  json::array array;
  for (const auto& item : items) array.push_back(object_of(item));
  return array;
}

}  // namespace

std::string json_report(const State& state, std::string_view address) {
  json::object report;
  report["schema"] = 1;
  report["address"] = address;
  report["node"] = object_of(state.node);
  report["totals"] = object_of(totals_of(state), state.counts);
  report["pools"] = array_of(state.pools);
  report["pins"] = json::array(state.pins.begin(), state.pins.end());
  report["runtimes"] = array_of(state.runtimes);
  report["calls"] = array_of(state.calls);
  report["calls_left_off"] = known(state.calls_left_off);
  report["recent_calls"] = array_of(state.recent);
  return json::serialize(report);
}

}  // namespace werk::app::top
