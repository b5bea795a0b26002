#include "werk/app/top/state.hpp"

#include <algorithm>
#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/parse.hpp>

#include "werk/app/node_page.hpp"
#include "werk/base/timestamp.hpp"

namespace werk::app::top {

namespace json = boost::json;

namespace {

using TimePoint = std::chrono::system_clock::time_point;

template <class Item, class Read>
std::vector<Item> items_in(const json::object& object, std::string_view member, const Read& read) {
  std::vector<Item> items;
  for (const json::value& value : array_in(object, member)) {
    if (value.is_object()) items.push_back(read(value.get_object()));
  }
  return items;
}

double seconds_between(TimePoint earlier, TimePoint later) {
  return std::max(0.0, std::chrono::duration<double>(later - earlier).count());
}

// What the node's clock says, as far as its page tells.
std::optional<TimePoint> clock_of(const json::object& node) {
  const auto started = time_of(text_in(node, "started_at"));
  const Figure uptime = figure_in(node, "uptime_s");
  if (!started || !uptime) return std::nullopt;
  return *started + std::chrono::seconds(static_cast<std::int64_t>(std::min(*uptime, 1e10)));
}

NodeFacts node_of(const json::object& object, TimePoint now) {
  NodeFacts node;
  node.version = text_in(object, "version");
  node.pid = count_in(object, "pid");
  node.started_at = text_in(object, "started_at");
  node.uptime_s = figure_in(object, "uptime_s");
  if (const auto started = time_of(node.started_at); started && !node.uptime_s)
    node.uptime_s = seconds_between(*started, now);
  node.loop_lag_s = figure_in(object, "loop_lag_s");
  node.connections = count_in(object, "connections");
  node.memory_bytes = count_in(object, "memory_bytes");
  node.open_files = count_in(object, "open_files");
  node.draining = truth_in(object, "draining").value_or(false);
  node.ready = truth_in(object, "ready");
  node.not_ready = text_in(object, "not_ready");
  return node;
}

Pool pool_of(const json::object& object) {
  return {text_in(object, "name"), count_in(object, "capacity"), count_in(object, "resident"),
          count_in(object, "starting"), count_in(object, "pinned")};
}

Runtime runtime_of(const json::object& object, TimePoint now) {
  Runtime runtime;
  runtime.key = text_in(object, "key");
  runtime.model = text_in(object, "model");
  runtime.engine = text_in(object, "engine");
  runtime.state = text_in(object, "state");
  runtime.pool = text_in(object, "pool");
  runtime.ownership = text_in(object, "ownership");
  runtime.progress = text_in(object, "progress");
  runtime.last_error = text_in(object, "last_error");
  runtime.since = text_in(object, "since");
  runtime.last_used = text_in(object, "last_used");
  runtime.pid = count_in(object, "pid");
  const json::object& slots = object_in(object, "slots");
  runtime.slots_total = count_in(slots, "total");
  runtime.slots_busy = count_in(slots, "busy");
  runtime.waiting = count_in(object, "waiting");
  runtime.calls = count_in(object, "calls");
  runtime.memory_bytes = count_in(object, "memory_bytes");
  const json::object& tokens = object_in(object, "tokens");
  runtime.tokens.cached = count_in(tokens, "prompt_cached");
  runtime.tokens.prompt = count_in(tokens, "prompt_new");
  if (runtime.tokens.prompt) *runtime.tokens.prompt += runtime.tokens.cached.value_or(0);
  runtime.tokens.output = count_in(tokens, "output");
  runtime.load_seconds = figure_in(object, "load_seconds");
  runtime.idle_timeout_s = figure_in(object, "idle_timeout_s");
  if (const auto since = time_of(runtime.since)) runtime.age_s = seconds_between(*since, now);
  runtime.output_tokens_per_second = figure_in(object, "output_tokens_per_second");
  runtime.tells_rate = object.contains("output_tokens_per_second");
  runtime.resident = truth_in(object, "resident");
  runtime.pinned = truth_in(object, "pinned").value_or(false);
  return runtime;
}

Tokens tokens_of(const json::object& call) {
  return {count_in(call, "prompt_tokens"), count_in(call, "cached_tokens"),
          count_in(call, "output_tokens")};
}

ActiveCall active_call_of(const json::object& object) {
  ActiveCall call;
  call.id = text_in(object, "id");
  call.dialect = text_in(object, "dialect");
  call.route = text_in(object, "route");
  call.model = text_in(object, "model");
  call.runtime = text_in(object, "runtime");
  call.phase = text_in(object, "phase");
  call.client = text_in(object, "client");
  call.age_s = figure_in(object, "age_s");
  call.phase_s = figure_in(object, "phase_s");
  call.tokens = tokens_of(object);
  call.stream = truth_in(object, "stream");
  return call;
}

EndedCall ended_call_of(const json::object& object) {
  EndedCall call;
  call.id = text_in(object, "id");
  call.dialect = text_in(object, "dialect");
  call.route = text_in(object, "route");
  call.model = text_in(object, "model");
  call.outcome = text_in(object, "outcome");
  call.cause = text_in(object, "cause");
  call.ended_at = text_in(object, "ended_at");
  call.status = count_in(object, "status");
  call.load_s = figure_in(object, "load_s");
  call.wait_s = figure_in(object, "wait_s");
  call.first_byte_s = figure_in(object, "first_byte_s");
  call.total_s = figure_in(object, "total_s");
  call.tokens = tokens_of(object);
  return call;
}

Figure rate(const Count& tokens, const Figure& seconds) {
  if (!tokens || !seconds || *seconds <= 0) return std::nullopt;
  return static_cast<double>(*tokens) / *seconds;
}

bool can_generate(const Runtime& runtime) {
  return runtime.state == "ready" || runtime.state == "closing";
}

template <class Number>
void add(std::optional<Number>& sum, const std::optional<Number>& one) {
  if (one) sum = sum.value_or(Number()) + *one;
}

}  // namespace

Result<State> read_state(std::string_view page, TimePoint now) {
  boost::system::error_code error;
  const json::value value = json::parse(page, error);
  if (error || !value.is_object() || !value.get_object().contains("runtimes"))
    return fail(ErrorCode::io, "what answers there is no node of Werk");
  const json::object& object = value.get_object();
  State state;
  const json::object& node = object_in(object, "node");
  state.node = node_of(node, now);
  now = clock_of(node).value_or(now);
  state.runtimes = items_in<Runtime>(
      object, "runtimes", [now](const json::object& one) { return runtime_of(one, now); });
  state.pools = items_in<Pool>(object, "pools", pool_of);
  for (const json::value& pin : array_in(object, "pins")) {
    if (pin.is_string()) state.pins.emplace_back(pin.get_string());
  }
  const json::object& counts = object_in(object, "calls");
  state.counts = {count_in(counts, "active"), count_in(counts, "waiting"),
                  count_in(counts, "served"), count_in(counts, "failed"),
                  count_in(counts, "cancelled")};
  state.calls = items_in<ActiveCall>(object, "active_calls", active_call_of);
  state.calls_left_off = count_in(object, "active_calls_left_off");
  state.recent = items_in<EndedCall>(object, "recent_calls", ended_call_of);
  return state;
}

void add_rates(State& state, const State& before, std::chrono::duration<double> apart) {
  if (apart.count() <= 0) return;
  for (Runtime& runtime : state.runtimes) {
    if (runtime.tells_rate || !runtime.tokens.output) continue;
    const auto same = std::ranges::find_if(before.runtimes, [&](const Runtime& one) {
      return one.key == runtime.key && one.pid == runtime.pid;
    });
    if (same == before.runtimes.end() || !same->tokens.output) continue;
    // Less than before is another runtime in its place.
    if (*same->tokens.output > *runtime.tokens.output) continue;
    const auto more = static_cast<double>(*runtime.tokens.output - *same->tokens.output);
    runtime.output_tokens_per_second = more / apart.count();
  }
}

bool lacks_rates(const State& state) {
  return std::ranges::any_of(state.runtimes, [](const Runtime& runtime) {
    return can_generate(runtime) && !runtime.tells_rate && runtime.tokens.output;
  });
}

Figure cached_share(const Tokens& tokens) {
  if (!tokens.prompt || !tokens.cached || *tokens.prompt == 0) return std::nullopt;
  return std::min(1.0, static_cast<double>(*tokens.cached) / static_cast<double>(*tokens.prompt));
}

Figure tokens_per_second(const ActiveCall& call) {
  return call.phase == "generating" ? rate(call.tokens.output, call.phase_s) : std::nullopt;
}

Figure tokens_per_second(const EndedCall& call) {
  if (!call.first_byte_s || !call.total_s) return std::nullopt;
  return rate(call.tokens.output, *call.total_s - *call.first_byte_s);
}

Totals totals_of(const State& state) {
  Totals totals;
  Tokens tokens;
  for (const Runtime& runtime : state.runtimes) {
    if (runtime.slots_total) totals.slots_busy += runtime.slots_busy.value_or(0);
    add(totals.slots, runtime.slots_total);
    add(totals.memory_bytes, runtime.memory_bytes);
    add(totals.output_tokens_per_second, runtime.output_tokens_per_second);
    if (!runtime.tokens.cached) continue;
    add(tokens.cached, runtime.tokens.cached);
    add(tokens.prompt, runtime.tokens.prompt);
  }
  totals.cached_share = cached_share(tokens);
  return totals;
}

}  // namespace werk::app::top
