#include "werk/gateway/gateway.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "werk/base/digest.hpp"
#include "werk/base/text.hpp"
#include "werk/gateway/errors.hpp"

namespace werk::gateway {
namespace {

constexpr std::string_view kJson = "application/json";
constexpr std::string_view kPlain = "text/plain; charset=utf-8";

http::ResponseHead head_of(std::string_view type, const std::string& id) {
  http::ResponseHead head;
  head.headers.add("Content-Type", std::string(type));
  head.headers.add("X-Request-Id", id);
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

async::awaitable<void> respond_error(http::Exchange& exchange, Error error, std::string id) {
  http::ResponseHead head = error_head(error);
  head.headers.add("X-Request-Id", id);
  const std::string body = openai_error_body(error);
  co_await exchange.respond(std::move(head), body);
}

}  // namespace

Gateway::Gateway(GatewaySettings settings, GatewayParts parts)
    : settings_(std::move(settings)),
      parts_(parts),
      access_(settings_.access),
      budget_(settings_.buffered_bodies_bytes_max),
      chat_(settings_.chat, parts.clock, parts.models, parts.router, parts.cache, parts.client,
            budget_) {}

async::awaitable<void> Gateway::handle(http::Exchange& exchange) {
  const http::Request& request = exchange.request();
  std::string id = request_id(request);
  Result<FoundRoute> route = find_route(request.path);
  if (!route) {
    // Who may not ask at all learns that first.
    FoundRoute unknown;
    Status admitted = admit(request, unknown);
    co_await respond_error(exchange, admitted ? route.error() : admitted.error(), std::move(id));
    co_return;
  }
  if (request.method == "OPTIONS") {
    co_await answer_preflight(exchange, allowed_methods(*route));
    co_return;
  }
  Status admitted = admit(request, *route);
  if (!admitted) {
    co_await respond_error(exchange, std::move(admitted.error()), std::move(id));
    co_return;
  }
  const bool fits =
      request.method == route->method || (request.method == "HEAD" && route->method == "GET");
  if (!fits) {
    Error error{
        ErrorCode::method_not_allowed,
        fmt::format("{} is asked with {}", printable(request.path), allowed_methods(*route)),
        Origin::client};
    http::ResponseHead head = error_head(error);
    head.headers.add("Allow", std::string(allowed_methods(*route)));
    head.headers.add("X-Request-Id", id);
    const std::string body = openai_error_body(error);
    co_await exchange.respond(std::move(head), body);
    co_return;
  }
  co_await answer(exchange, *route, std::move(id));
}

Status Gateway::admit(const http::Request& request, const FoundRoute& route) const {
  Status host = access_.check_host(request);
  if (!host) return host;
  if (route.key == KeyRule::open) return {};
  return access_.check_key(request);
}

async::awaitable<void> Gateway::answer(http::Exchange& exchange, const FoundRoute& route,
                                       std::string id) {
  switch (route.id) {
    case RouteId::root: {
      http::ResponseHead head = head_of(kPlain, id);
      co_await exchange.respond(std::move(head), "werk is running\n");
      break;
    }
    case RouteId::health:
    case RouteId::livez: {
      http::ResponseHead head = head_of(kJson, id);
      co_await exchange.respond(std::move(head), "{\"status\":\"ok\"}");
      break;
    }
    case RouteId::readyz: co_await answer_ready(exchange, std::move(id)); break;
    case RouteId::models: co_await answer_models(exchange, std::move(id)); break;
    case RouteId::model: co_await answer_model(exchange, route.model_id, std::move(id)); break;
    case RouteId::chat_completions: co_await answer_chat(exchange, std::move(id)); break;
    case RouteId::observability: {
      const std::string page = observability_page(
          settings_.node, draining_, parts_.cache.snapshot(), counters_, parts_.cache.waiting());
      http::ResponseHead head = head_of(kJson, id);
      co_await exchange.respond(std::move(head), page);
      break;
    }
  }
}

async::awaitable<void> Gateway::answer_ready(http::Exchange& exchange, std::string id) {
  Error error;
  if (draining_ == Draining::yes) {
    error = draining_error();
  } else if (!not_ready_.empty()) {
    error = Error{ErrorCode::start_failed, not_ready_};
  } else {
    http::ResponseHead head = head_of(kJson, id);
    co_await exchange.respond(std::move(head), "{\"status\":\"ready\"}");
    co_return;
  }
  co_await respond_error(exchange, std::move(error), std::move(id));
}

async::awaitable<void> Gateway::answer_models(http::Exchange& exchange, std::string id) {
  const auto catalogue = co_await parts_.models.current();
  const std::string page = models_page(*catalogue);
  http::ResponseHead head = head_of(kJson, id);
  co_await exchange.respond(std::move(head), page);
}

async::awaitable<void> Gateway::answer_model(http::Exchange& exchange, std::string name,
                                             std::string id) {
  const auto catalogue = co_await parts_.models.current();
  const model::InstalledModel* model = catalogue->find(name);
  if (model == nullptr) {
    Result<routing::Route> refusal = parts_.router.route(*catalogue, name);
    Error error =
        refusal ? Error{ErrorCode::internal, "the model list changed; ask again"} : refusal.error();
    co_await respond_error(exchange, std::move(error), std::move(id));
    co_return;
  }
  const std::string page = model_page(*model, name);
  http::ResponseHead head = head_of(kJson, id);
  co_await exchange.respond(std::move(head), page);
}

async::awaitable<void> Gateway::answer_chat(http::Exchange& exchange, std::string id) {
  Call call(counters_, parts_.clock, id, "/v1/chat/completions");
  if (draining_ == Draining::yes) {
    Error error = draining_error();
    call.failed(error);
    call.status = row_of(error.code).status;
    co_await respond_error(exchange, std::move(error), std::move(id));
    co_return;
  }
  co_await chat_.handle(exchange, call);
}

async::awaitable<void> Gateway::answer_preflight(http::Exchange& exchange, std::string_view allow) {
  http::ResponseHead head;
  head.status = 204;
  head.headers.add("Allow", std::string(allow));
  co_await exchange.respond(std::move(head), "");
}

}  // namespace werk::gateway
