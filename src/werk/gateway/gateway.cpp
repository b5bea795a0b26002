#include "werk/gateway/gateway.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "werk/base/digest.hpp"
#include "werk/base/text.hpp"
#include "werk/gateway/errors.hpp"
#include "werk/gateway/tagged_exchange.hpp"

namespace werk::gateway {
namespace {

constexpr std::string_view kJson = "application/json";
constexpr std::string_view kAnyMethod = "GET, HEAD, POST, OPTIONS";
constexpr std::string_view kPlain = "text/plain; charset=utf-8";

http::ResponseHead head_of(std::string_view type) {
  http::ResponseHead head;
  head.headers.add("Content-Type", std::string(type));
  return head;
}

// The client's own id if it is a sane one, so that it finds its call in our log; else a new one.
std::string request_id(const http::Request& request) {
  constexpr std::size_t kLongest = 128;
  constexpr std::size_t kBytes = 12;
  const auto given = request.headers.find("X-Request-Id");
  const bool sane = given && !given->empty() && given->size() <= kLongest &&
                    std::ranges::all_of(*given, [](char c) { return c > ' ' && c < '\x7F'; });
  return sane ? std::string(*given) : "req_" + random_hex(kBytes);
}

Error draining_error() {
  Error error{ErrorCode::draining, "the node is shutting down"};
  error.retry_after = std::chrono::seconds(5);
  return error;
}

// What every answer carries.
http::Headers tags(const http::Request& request, const Access& access, const std::string& id) {
  http::Headers tags;
  tags.add("X-Request-Id", id);
  if (request.headers.find("Origin")) tags.add("Vary", "Origin");
  if (const auto origin = access.page_origin(request)) {
    tags.add("Access-Control-Allow-Origin", std::string(*origin));
    tags.add("Access-Control-Expose-Headers", "X-Request-Id, Retry-After");
  }
  return tags;
}

async::awaitable<void> respond_error(http::Exchange& exchange, Error error) {
  http::ResponseHead head = error_head(error);
  const std::string body = openai_error_body(error);
  co_await exchange.respond(std::move(head), body);
}

}  // namespace

Gateway::Gateway(GatewaySettings settings, GatewayParts parts)
    : settings_(std::move(settings)),
      parts_(parts),
      access_(settings_.access),
      budget_(settings_.buffered_bodies_bytes_max),
      chat_(settings_.chat, CallParts{parts.clock, parts.models, parts.router, parts.cache,
                                      parts.client, budget_}) {}

async::awaitable<void> Gateway::handle(http::Exchange& exchange) {
  const http::Request& request = exchange.request();
  std::string id = request_id(request);
  TaggedExchange tagged(exchange, tags(request, access_, id));
  Result<FoundRoute> route = find_route(request.path);
  if (request.method == "OPTIONS" && access_.check_host(request)) {
    // Whether a page may call is asked without a key, also of a path that isn't there: the call
    // itself then explains.
    if (route || access_.page_origin(request)) {
      const std::string_view allow = route ? allowed_methods(*route) : kAnyMethod;
      co_await answer_options(tagged, allow);
      co_return;
    }
  }
  // Who may not ask at all learns that before anything else.
  Status admitted = admit(request, route ? route->key : KeyRule::needed);
  if (!admitted) {
    co_await respond_error(tagged, std::move(admitted.error()));
  } else if (!route) {
    co_await respond_error(tagged, std::move(route.error()));
  } else if (request.method == route->method ||
             (request.method == "HEAD" && route->method == "GET")) {
    co_await answer(tagged, *route, std::move(id));
  } else {
    co_await refuse_method(tagged, allowed_methods(*route));
  }
}

Status Gateway::admit(const http::Request& request, KeyRule key) const {
  Status host = access_.check_host(request);
  if (!host) return host;
  if (key == KeyRule::open) return {};
  return access_.check_key(request);
}

async::awaitable<void> Gateway::answer(http::Exchange& exchange, const FoundRoute& route,
                                       std::string id) {
  switch (route.id) {
    case RouteId::root: {
      http::ResponseHead head = head_of(kPlain);
      co_await exchange.respond(std::move(head), "werk is running\n");
      break;
    }
    case RouteId::health:
    case RouteId::livez: {
      http::ResponseHead head = head_of(kJson);
      co_await exchange.respond(std::move(head), "{\"status\":\"ok\"}");
      break;
    }
    case RouteId::readyz: co_await answer_ready(exchange); break;
    case RouteId::models: co_await answer_models(exchange); break;
    case RouteId::model: co_await answer_model(exchange, route.model_id); break;
    case RouteId::chat_completions: co_await answer_chat(exchange, std::move(id)); break;
    case RouteId::observability: {
      const std::string page = observability_page(
          settings_.node, draining_, parts_.cache.snapshot(), counters_, parts_.cache.waiting());
      http::ResponseHead head = head_of(kJson);
      co_await exchange.respond(std::move(head), page);
      break;
    }
  }
}

async::awaitable<void> Gateway::answer_ready(http::Exchange& exchange) {
  Error error;
  if (draining_ == Draining::yes) {
    error = draining_error();
  } else if (!not_ready_.empty()) {
    error = Error{ErrorCode::start_failed, not_ready_};
  } else {
    http::ResponseHead head = head_of(kJson);
    co_await exchange.respond(std::move(head), "{\"status\":\"ready\"}");
    co_return;
  }
  co_await respond_error(exchange, std::move(error));
}

async::awaitable<void> Gateway::answer_models(http::Exchange& exchange) {
  const auto catalogue = co_await parts_.models.current();
  const std::string page = models_page(*catalogue);
  http::ResponseHead head = head_of(kJson);
  co_await exchange.respond(std::move(head), page);
}

async::awaitable<void> Gateway::answer_model(http::Exchange& exchange, std::string name) {
  const auto catalogue = co_await parts_.models.current();
  const model::InstalledModel* model = catalogue->find(name);
  if (model == nullptr) {
    Result<routing::Route> refusal = parts_.router.route(*catalogue, name);
    Error error =
        refusal ? Error{ErrorCode::internal, "the model list changed; ask again"} : refusal.error();
    co_await respond_error(exchange, std::move(error));
    co_return;
  }
  const std::string page = model_page(*model, name);
  http::ResponseHead head = head_of(kJson);
  co_await exchange.respond(std::move(head), page);
}

async::awaitable<void> Gateway::answer_chat(http::Exchange& exchange, std::string id) {
  Call call(counters_, parts_.clock, id, "/v1/chat/completions");
  if (draining_ == Draining::yes) {
    Error error = draining_error();
    call.failed(error);
    call.status = row_of(error.code).status;
    co_await respond_error(exchange, std::move(error));
    co_return;
  }
  co_await chat_.handle(exchange, call);
}

async::awaitable<void> Gateway::answer_options(http::Exchange& exchange, std::string_view allow) {
  http::ResponseHead head;
  head.status = 204;
  head.headers.add("Allow", std::string(allow));
  const http::Request& request = exchange.request();
  if (access_.page_origin(request)) {
    head.headers.add("Access-Control-Allow-Methods", std::string(allow));
    if (const auto asked = request.headers.find("Access-Control-Request-Headers"))
      head.headers.add("Access-Control-Allow-Headers", std::string(*asked));
    head.headers.add("Access-Control-Max-Age", "600");
  }
  co_await exchange.respond(std::move(head), "");
}

async::awaitable<void> Gateway::refuse_method(http::Exchange& exchange, std::string_view allow) {
  const Error error{ErrorCode::method_not_allowed,
                    fmt::format("{} is asked with {}", printable(exchange.request().path), allow),
                    Origin::client};
  http::ResponseHead head = error_head(error);
  head.headers.add("Allow", std::string(allow));
  const std::string body = openai_error_body(error);
  co_await exchange.respond(std::move(head), body);
}

}  // namespace werk::gateway
