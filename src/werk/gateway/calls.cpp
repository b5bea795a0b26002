#include "werk/gateway/calls.hpp"

#include <boost/json/object.hpp>

#include "werk/gateway/call_pages.hpp"

namespace werk::gateway {

namespace json = boost::json;

std::list<const Call*>::iterator Calls::enter(const Call& call) {
  ++counters_.active;
  return active_.insert(active_.end(), &call);
}

void Calls::admitted(const Call& call) {
  recorder_.events().publish("call.admitted", [&](json::object& object) {
    object["id"] = call.id();
    object["dialect"] = telemetry::name_of(call.dialect());
    object["route"] = call.route();
    object["model"] = call.shown_model();
    object["runtime"] = call.runtime_key();
    object["load_s"] = std::chrono::duration<double>(call.load_time()).count();
    object["wait_s"] = std::chrono::duration<double>(call.permit_time()).count();
  });
}

void Calls::leave(std::list<const Call*>::iterator place, CallRecord record,
                  const telemetry::EndedCall& ended) {
  active_.erase(place);
  --counters_.active;
  if (ended.outcome == telemetry::Outcome::served) ++counters_.served;
  if (ended.outcome == telemetry::Outcome::failed) ++counters_.failed;
  if (ended.outcome == telemetry::Outcome::cancelled) ++counters_.cancelled;
  recorder_.metrics().count(ended);
  const bool refused = !ended.admitted && ended.outcome == telemetry::Outcome::failed;
  recorder_.events().publish(refused ? "call.refused" : "call.finished", [&](json::object& object) {
    for (auto& member : recent_call(record)) object[member.key()] = std::move(member.value());
  });
  recent_.push_back(std::move(record));
  if (recent_.size() > kRecentMax) recent_.pop_front();
}

}  // namespace werk::gateway
