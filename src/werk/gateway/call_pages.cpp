#include "werk/gateway/call_pages.hpp"

#include <ranges>

#include "werk/base/timestamp.hpp"
#include "werk/gateway/status_pages.hpp"

namespace werk::gateway {

namespace json = boost::json;

namespace {

double seconds(async::Duration duration) { return std::chrono::duration<double>(duration).count(); }

json::value tokens(const std::optional<std::uint64_t>& count) {
  return count ? json::value(*count) : json::value(nullptr);
}

json::value text_or_null(const std::string& text) {
  return text.empty() ? json::value(nullptr) : json::value(text);
}

json::object active_call(const Call& call, async::TimePoint now) {
  json::object object;
  object["id"] = call.id();
  object["dialect"] = telemetry::name_of(call.dialect());
  object["route"] = call.route();
  object["model"] = text_or_null(call.shown_model());
  object["runtime"] = text_or_null(call.runtime_key());
  object["phase"] = telemetry::name_of(call.phase());
  object["age_s"] = seconds(now - call.begun());
  object["phase_s"] = seconds(now - call.phase_since());
  object["client"] = call.client;
  object["stream"] = call.streamed;
  object["prompt_tokens"] = tokens(call.prompt_tokens);
  object["cached_tokens"] = tokens(call.cached_tokens);
  object["output_tokens"] = call.parts();
  return object;
}

}  // namespace

ActiveCalls active_calls(const Calls& calls) {
  ActiveCalls active;
  const async::TimePoint now = calls.now();
  for (const Call* call : calls.active()) {
    if (active.list.size() == kActiveCallsMax) break;
    active.list.push_back(active_call(*call, now));
  }
  active.left_off = calls.active().size() - active.list.size();
  return active;
}

json::array recent_calls(const Calls& calls) {
  json::array list;
  for (const CallRecord& record : calls.recent() | std::views::reverse)
    list.push_back(recent_call(record));
  return list;
}

json::object recent_call(const CallRecord& record) {
  json::object object;
  object["id"] = record.id;
  object["dialect"] = telemetry::name_of(record.dialect);
  object["route"] = record.route;
  object["model"] = text_or_null(record.model);
  object["outcome"] = telemetry::name_of(record.outcome);
  object["status"] = record.status;
  object["cause"] = record.cause ? json::value(werk::name_of(*record.cause)) : json::value(nullptr);
  object["ended_at"] = timestamp(record.ended_at);
  object["load_s"] = seconds(record.load_time);
  object["wait_s"] = seconds(record.permit_time);
  object["first_byte_s"] =
      record.first_byte ? json::value(seconds(*record.first_byte)) : json::value(nullptr);
  object["total_s"] = seconds(record.total);
  object["prompt_tokens"] = tokens(record.tokens.prompt);
  object["cached_tokens"] = tokens(record.tokens.cached);
  object["output_tokens"] = tokens(record.tokens.output);
  return object;
}

}  // namespace werk::gateway
