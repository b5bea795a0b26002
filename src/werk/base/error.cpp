#include "werk/base/error.hpp"

namespace werk {

std::string_view name_of(ErrorCode code) {
  switch (code) {
    case ErrorCode::invalid_request:
      return "invalid_request";
    case ErrorCode::unauthorized:
      return "unauthorized";
    case ErrorCode::forbidden:
      return "forbidden";
    case ErrorCode::model_not_found:
      return "model_not_found";
    case ErrorCode::route_not_found:
      return "route_not_found";
    case ErrorCode::method_not_allowed:
      return "method_not_allowed";
    case ErrorCode::payload_too_large:
      return "payload_too_large";
    case ErrorCode::context_length_exceeded:
      return "context_length_exceeded";
    case ErrorCode::model_unusable:
      return "model_unusable";
    case ErrorCode::unsupported:
      return "unsupported";
    case ErrorCode::loop_detected:
      return "loop_detected";
    case ErrorCode::queue_full:
      return "queue_full";
    case ErrorCode::capacity:
      return "capacity";
    case ErrorCode::draining:
      return "draining";
    case ErrorCode::unloaded:
      return "unloaded";
    case ErrorCode::start_failed:
      return "start_failed";
    case ErrorCode::engine_failed:
      return "engine_failed";
    case ErrorCode::engine_timeout:
      return "engine_timeout";
    case ErrorCode::cancelled:
      return "cancelled";
    case ErrorCode::not_found:
      return "not_found";
    case ErrorCode::conflict:
      return "conflict";
    case ErrorCode::io:
      return "io";
    case ErrorCode::internal:
      return "internal";
  }
  return "internal";
}

std::string_view name_of(Origin origin) {
  switch (origin) {
    case Origin::client:
      return "client";
    case Origin::node:
      return "node";
    case Origin::engine:
      return "engine";
  }
  return "node";
}

}  // namespace werk
