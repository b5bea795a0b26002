// The routes of the node as plain data, and which one a path means. Pure. Paths are taken as they
// are: a trailing slash, doubled slashes or a doubled version prefix are not a route, but the
// refusal names the one that was probably meant.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "werk/base/result.hpp"

namespace werk::gateway {

enum class RouteId : std::uint8_t {
  root,
  health,
  livez,
  readyz,
  models,
  model,
  chat_completions,
  messages,
  count_tokens,
  observability,
  events,
  metrics,
  load_model,
  unload_model,
  pin_model,
  unpin_model,
  stop,
  logs,
};

enum class KeyRule : std::uint8_t { open, needed };

struct FoundRoute {
  RouteId id = RouteId::root;
  std::string_view method;  // GET (HEAD works too) or POST
  KeyRule key = KeyRule::needed;
  std::string model_id;  // of routes with one, percent-decoded
};

// route_not_found with a likely route, if none fits. The method is for the caller to compare.
Result<FoundRoute> find_route(std::string_view path);

// What stands in an Allow header.
std::string_view allowed_methods(const FoundRoute& route);

// "%2F" -> "/"; a percent sign that starts no escape stays.
std::string percent_decoded(std::string_view text);

}  // namespace werk::gateway
