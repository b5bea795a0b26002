#include "werk/gateway/errors.hpp"

#include <algorithm>
#include <boost/json/object.hpp>
#include <boost/json/serialize.hpp>

#include "werk/base/text.hpp"

namespace werk::gateway {

namespace json = boost::json;

namespace {

constexpr std::string_view kInvalid = "invalid_request_error";
constexpr std::string_view kServer = "server_error";

std::string envelope(std::string_view message, const ErrorRow& row, std::string_view param,
                     std::string_view origin) {
  json::object error;
  error["message"] = printable(message);
  error["type"] = row.openai_type;
  error["code"] = row.openai_code;
  if (param.empty()) {
    error["param"] = nullptr;
  } else {
    error["param"] = printable(param);
  }
  error["origin"] = origin;
  json::object body;
  body["error"] = std::move(error);
  return json::serialize(body);
}

}  // namespace

ErrorRow row_of(ErrorCode code) {
  switch (code) {
    case ErrorCode::invalid_request: return {400, kInvalid, "invalid_request", kInvalid};
    case ErrorCode::unauthorized: return {401, kInvalid, "invalid_api_key", "authentication_error"};
    case ErrorCode::forbidden: return {403, kInvalid, "forbidden", "permission_error"};
    case ErrorCode::model_not_found: return {404, kInvalid, "model_not_found", "not_found_error"};
    case ErrorCode::route_not_found: return {404, kInvalid, "route_not_found", "not_found_error"};
    case ErrorCode::method_not_allowed: return {405, kInvalid, "method_not_allowed", kInvalid};
    case ErrorCode::payload_too_large:
      return {413, kInvalid, "payload_too_large", "request_too_large"};
    case ErrorCode::context_length_exceeded:
      return {400, kInvalid, "context_length_exceeded", kInvalid};
    case ErrorCode::model_unusable: return {400, kInvalid, "model_unusable", kInvalid};
    case ErrorCode::unsupported: return {400, kInvalid, "unsupported", kInvalid};
    case ErrorCode::loop_detected: return {400, kInvalid, "loop_detected", kInvalid};
    case ErrorCode::queue_full: return {429, "rate_limit_error", "queue_full", "rate_limit_error"};
    case ErrorCode::capacity: return {503, kServer, "capacity", "overloaded_error"};
    case ErrorCode::draining: return {503, kServer, "draining", "overloaded_error"};
    case ErrorCode::unloaded: return {503, kServer, "unloaded", "overloaded_error"};
    case ErrorCode::start_failed: return {503, kServer, "start_failed", "api_error"};
    case ErrorCode::engine_failed: return {502, kServer, "engine_failed", "api_error"};
    case ErrorCode::engine_timeout: return {504, kServer, "engine_timeout", "timeout_error"};
    case ErrorCode::cancelled: return {499, kInvalid, "cancelled", kInvalid};
    case ErrorCode::not_found: return {404, kInvalid, "not_found", "not_found_error"};
    case ErrorCode::conflict: return {409, kInvalid, "conflict", kInvalid};
    case ErrorCode::io: return {500, kServer, "io", "api_error"};
    case ErrorCode::internal: return {500, kServer, "internal", "api_error"};
  }
  return {500, kServer, "internal", "api_error"};
}

std::string openai_error_body(const Error& error) {
  return envelope(error.message, row_of(error.code), error.param, name_of(error.origin));
}

std::string openai_error_event(const Error& error) {
  return "data: " + openai_error_body(error) + "\n\n";
}

const ErrorSpeech& openai_errors() {
  static constexpr ErrorSpeech kSpeech{
      [](const Error& error, std::string_view) { return openai_error_body(error); },
      [](const Error& error, std::string_view) { return openai_error_event(error); }};
  return kSpeech;
}

http::ResponseHead error_head(const Error& error) {
  constexpr std::chrono::seconds kShortest{1};
  constexpr std::chrono::seconds kLongest{60};
  http::ResponseHead head;
  head.status = row_of(error.code).status;
  head.headers.add("Content-Type", "application/json");
  const bool waiting_helps = head.status == 429 || head.status == 503;
  if (waiting_helps) {
    const auto after = std::clamp(error.retry_after.value_or(kShortest), kShortest, kLongest);
    head.headers.add("Retry-After", std::to_string(after.count()));
  }
  return head;
}

std::string server_error_body(int status, std::string_view message) {
  const bool client_fault = status < 500;
  ErrorRow row = row_of(client_fault ? ErrorCode::invalid_request : ErrorCode::internal);
  if (status == 413) row = row_of(ErrorCode::payload_too_large);
  if (status == 503) row = row_of(ErrorCode::capacity);
  return envelope(message, row, {}, name_of(client_fault ? Origin::client : Origin::node));
}

}  // namespace werk::gateway
