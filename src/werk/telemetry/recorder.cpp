#include "werk/telemetry/recorder.hpp"

#include <boost/json/object.hpp>

#include "werk/base/text.hpp"

namespace werk::telemetry {

namespace json = boost::json;

namespace {

void name_into(json::object& object, const RuntimeName& runtime) {
  object["runtime"] = runtime.key;
  object["model"] = runtime.model;
  object["engine"] = runtime.engine;
  object["pool"] = runtime.pool;
}

// What a runtime that went is told as: people unload, the node evicts.
std::string_view event_of(StopReason reason) {
  switch (reason) {
    case StopReason::capacity:
    case StopReason::idle:
    case StopReason::not_kept:
    case StopReason::silent: return "runtime.evicted";
    case StopReason::unloaded: return "runtime.unloaded";
    case StopReason::shutdown: return "runtime.stopped";
  }
  return "runtime.stopped";
}

}  // namespace

void Recorder::starting(const RuntimeName& runtime) {
  ++metrics_.of_engine(runtime.engine).starts;
  events_.publish("runtime.starting", [&](json::object& object) { name_into(object, runtime); });
}

void Recorder::progressed(const RuntimeName& runtime, std::string_view what) {
  events_.publish("runtime.progress", [&](json::object& object) {
    name_into(object, runtime);
    object["progress"] = printable(what);
  });
}

void Recorder::ready(const RuntimeName& runtime, std::chrono::duration<double> took,
                     std::size_t slots) {
  metrics_.of_engine(runtime.engine).start_seconds.observe(took.count());
  events_.publish("runtime.ready", [&](json::object& object) {
    name_into(object, runtime);
    object["load_seconds"] = took.count();
    object["slots"] = slots > 0 ? json::value(slots) : json::value(nullptr);
  });
}

void Recorder::start_failed(const RuntimeName& runtime, const Error& error) {
  ++metrics_.of_engine(runtime.engine).start_failures[error.code];
  events_.publish("runtime.start_failed", [&](json::object& object) {
    name_into(object, runtime);
    object["cause"] = werk::name_of(error.code);
    object["message"] = printable(error.message);
  });
}

void Recorder::stopping(const RuntimeName& runtime, StopReason reason) {
  if (reason != StopReason::shutdown) ++metrics_.of_engine(runtime.engine).evictions[reason];
  events_.publish("runtime.stopping", [&](json::object& object) {
    name_into(object, runtime);
    object["reason"] = name_of(reason);
  });
}

void Recorder::stopped(const RuntimeName& runtime, StopReason reason) {
  events_.publish(event_of(reason), [&](json::object& object) {
    name_into(object, runtime);
    object["reason"] = name_of(reason);
  });
}

void Recorder::died(const RuntimeName& runtime, std::string_view how) {
  ++metrics_.of_engine(runtime.engine).deaths;
  events_.publish("runtime.died", [&](json::object& object) {
    name_into(object, runtime);
    object["how"] = printable(how);
  });
}

}  // namespace werk::telemetry
