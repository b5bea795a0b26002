#include "werk/gateway/gateway.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "werk/base/digest.hpp"
#include "werk/base/text.hpp"
#include "werk/gateway/errors.hpp"
#include "werk/gateway/hops.hpp"
#include "werk/gateway/messages_errors.hpp"
#include "werk/gateway/node_gauges.hpp"
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
  const auto given = request.headers.find("X-Request-Id");
  const bool sane = given && !given->empty() && given->size() <= kLongest &&
                    std::ranges::all_of(*given, [](char c) { return c > ' ' && c < '\x7F'; });
  return sane ? std::string(*given) : "req_" + unique_hex();
}

Error draining_error() {
  Error error{ErrorCode::draining, "the node is shutting down"};
  error.retry_after = std::chrono::seconds(5);
  return error;
}

Speaks dialect_of(const http::Request& request);

// What every answer carries.
http::Headers tags(const http::Request& request, const Access& access, const std::string& id) {
  http::Headers tags;
  tags.add("X-Request-Id", id);
  if (dialect_of(request) == Speaks::messages) tags.add("request-id", id);
  if (request.headers.find("Origin")) tags.add("Vary", "Origin");
  if (const auto origin = access.page_origin(request)) {
    tags.add("Access-Control-Allow-Origin", std::string(*origin));
    tags.add("Access-Control-Expose-Headers", "X-Request-Id, Retry-After");
  }
  return tags;
}

// Which dialect a request speaks where the path alone doesn't tell: that of its own routes, and of
// the header that only its clients send.
Speaks dialect_of(const http::Request& request) {
  const bool messages =
      request.path.starts_with("/v1/messages") || request.headers.find("anthropic-version");
  return messages ? Speaks::messages : Speaks::openai;
}

}  // namespace

// One request on its way through the gateway.
struct Gateway::Asked {
  http::Exchange& exchange;
  std::string id;
  Speaks speaks = Speaks::openai;

  async::awaitable<void> fail_with(Error error) const {
    const ErrorSpeech& speech = speaks == Speaks::messages ? messages_errors() : openai_errors();
    http::ResponseHead head = error_head(error);
    const std::string body = speech.body(error, id);
    co_await exchange.respond(std::move(head), body);
  }
};

Gateway::Gateway(GatewaySettings settings, GatewayParts parts)
    : settings_(std::move(settings)),
      parts_(parts),
      access_(settings_.access),
      budget_(settings_.buffered_bodies_bytes_max),
      calls_(parts.clock, parts.recorder),
      readings_(parts.clock),
      events_(parts.clock, parts.recorder.events()),
      chat_(settings_.chat, call_parts()),
      messages_(settings_.chat, settings_.prompt_edits, call_parts()),
      control_(ControlParts{parts.models, parts.router, parts.cache, parts.output, parts.clock,
                            calls_.counters(), readings_}),
      begun_(parts.clock.now()) {}

CallParts Gateway::call_parts() {
  return {parts_.clock,  parts_.models, parts_.router,    parts_.cache,
          parts_.client, budget_,       settings_.node_id};
}

async::awaitable<void> Gateway::handle(http::Exchange& exchange) {
  const http::Request& request = exchange.request();
  std::string id = request_id(request);
  TaggedExchange tagged(exchange, tags(request, access_, id));
  const Asked asked{tagged, std::move(id), dialect_of(request)};
  Result<FoundRoute> route = find_route(request.path);
  if (request.method == "OPTIONS" && access_.check_host(request)) {
    // Whether a page may call is asked without a key, also of a path that isn't there: the call
    // itself then explains.
    if (route || access_.page_origin(request)) {
      const std::string_view allow = route ? allowed_methods(*route) : kAnyMethod;
      co_await answer_options(asked, allow);
      co_return;
    }
  }
  // Who may not ask at all learns that before anything else.
  Status admitted = admit(request, route ? route->key : KeyRule::needed);
  if (!admitted) {
    co_await asked.fail_with(std::move(admitted.error()));
  } else if (!route) {
    co_await asked.fail_with(std::move(route.error()));
  } else if (request.method == route->method ||
             (request.method == "HEAD" && route->method == "GET")) {
    co_await answer(asked, *route);
  } else {
    co_await refuse_method(asked, allowed_methods(*route));
  }
}

Status Gateway::admit(const http::Request& request, KeyRule key) const {
  Status host = access_.check_host(request);
  if (!host) return host;
  if (key == KeyRule::open) return {};
  return access_.check_key(request);
}

async::awaitable<void> Gateway::answer(const Asked& asked, const FoundRoute& route) {
  switch (route.id) {
    case RouteId::root: {
      http::ResponseHead head = head_of(kPlain);
      co_await asked.exchange.respond(std::move(head), "werk is running\n");
      break;
    }
    case RouteId::health:
    case RouteId::livez: {
      http::ResponseHead head = head_of(kJson);
      co_await asked.exchange.respond(std::move(head), "{\"status\":\"ok\"}");
      break;
    }
    case RouteId::readyz: co_await answer_ready(asked); break;
    case RouteId::models: co_await answer_models(asked); break;
    case RouteId::model: co_await answer_model(asked, route.model_id); break;
    case RouteId::chat_completions:
      co_await answer_call(asked, "/v1/chat/completions", route.id);
      break;
    case RouteId::messages: co_await answer_call(asked, "/v1/messages", route.id); break;
    case RouteId::count_tokens:
      co_await answer_call(asked, "/v1/messages/count_tokens", route.id);
      break;
    case RouteId::observability: co_await answer_observability(asked); break;
    case RouteId::metrics: co_await answer_metrics(asked); break;
    case RouteId::events: co_await answer_events(asked); break;
    case RouteId::load_model:
    case RouteId::unload_model:
    case RouteId::pin_model:
    case RouteId::unpin_model:
    case RouteId::stop:
    case RouteId::logs: co_await answer_control(asked, route); break;
  }
}

async::awaitable<void> Gateway::answer_ready(const Asked& asked) {
  std::optional<Error> error = not_ready(state_of(parts_.cache));
  if (!error) {
    http::ResponseHead head = head_of(kJson);
    co_await asked.exchange.respond(std::move(head), "{\"status\":\"ready\"}");
    co_return;
  }
  co_await asked.fail_with(std::move(*error));
}

std::optional<Error> Gateway::not_ready(const CacheState& cache) const {
  if (draining_ == Draining::yes) return draining_error();
  if (!not_ready_.empty()) return Error{ErrorCode::start_failed, not_ready_};
  return gateway::not_ready(settings_.ready, parts_.loop_lag.worst(), cache.runtimes, calls_);
}

NodeState Gateway::state(const CacheState& cache) {
  const telemetry::ProcessStats own = readings_.own();
  NodeState state;
  state.draining = draining_;
  state.uptime_s = std::chrono::duration<double>(parts_.clock.now() - begun_).count();
  state.loop_lag_s = std::chrono::duration<double>(parts_.loop_lag.worst()).count();
  state.connections = connections_ ? connections_() : 0;
  state.memory_bytes = own.resident_bytes;
  state.open_files = own.open_files;
  if (const auto cause = not_ready(cache)) state.not_ready = cause->message;
  return state;
}

async::awaitable<void> Gateway::answer_observability(const Asked& asked) {
  const CacheState cache = state_of(parts_.cache);
  const NodeState node = state(cache);
  const MemoryOf memory_of = [this](int pid) { return readings_.memory_of(pid); };
  const std::string page = observability_page(settings_.node, node, cache, calls_, memory_of);
  http::ResponseHead head = head_of(kJson);
  co_await asked.exchange.respond(std::move(head), page);
}

async::awaitable<void> Gateway::answer_metrics(const Asked& asked) {
  const auto catalogue = co_await parts_.models.current();
  std::set<std::string_view> installed;
  for (const model::InstalledModel& model : catalogue->models())
    installed.insert(model.manifest.id);
  parts_.recorder.metrics().keep_models(installed);
  const CacheState cache = state_of(parts_.cache);
  const NodeState node = state(cache);
  const MemoryOf memory_of = [this](int pid) { return readings_.memory_of(pid); };
  telemetry::Gauges gauges = node_gauges(node, cache, memory_of);
  gauges.version = settings_.node.version;
  gauges.calls_active = calls_.counters().active;
  gauges.process = readings_.own();
  const std::string page = telemetry::metrics_page(parts_.recorder.metrics(), gauges);
  http::ResponseHead head = head_of(telemetry::kMetricsType);
  co_await asked.exchange.respond(std::move(head), page);
}

async::awaitable<void> Gateway::answer_events(const Asked& asked) {
  Status told = co_await events_.follow(asked.exchange);
  if (!told && !asked.exchange.started()) co_await asked.fail_with(std::move(told.error()));
}

async::awaitable<void> Gateway::answer_models(const Asked& asked) {
  const auto catalogue = co_await parts_.models.current();
  const std::string page = models_page(*catalogue, asked.speaks);
  http::ResponseHead head = head_of(kJson);
  co_await asked.exchange.respond(std::move(head), page);
}

async::awaitable<void> Gateway::answer_model(const Asked& asked, std::string name) {
  const auto catalogue = co_await parts_.models.current();
  const model::InstalledModel* model = parts_.router.find(*catalogue, name);
  if (model == nullptr) {
    Result<routing::Route> refusal = parts_.router.route(*catalogue, name);
    Error error =
        refusal ? Error{ErrorCode::internal, "the model list changed; ask again"} : refusal.error();
    co_await asked.fail_with(std::move(error));
    co_return;
  }
  const std::string page = model_page(*model, name, asked.speaks);
  http::ResponseHead head = head_of(kJson);
  co_await asked.exchange.respond(std::move(head), page);
}

async::awaitable<void> Gateway::answer_call(const Asked& asked, std::string_view route,
                                            RouteId id) {
  Call call(calls_, asked.id, route);
  call.client = asked.exchange.request().peer;
  Status taken = check_hops(asked.exchange.request().headers, settings_.node_id);
  if (draining_ == Draining::yes) taken = fail(draining_error());
  if (!taken) {
    Error error = std::move(taken.error());
    call.failed(error);
    call.status = row_of(error.code).status;
    co_await asked.fail_with(std::move(error));
    co_return;
  }
  if (id == RouteId::chat_completions) co_await chat_.handle(asked.exchange, call);
  if (id == RouteId::messages) co_await messages_.generate(asked.exchange, call);
  if (id == RouteId::count_tokens) co_await messages_.count(asked.exchange, call);
}

async::awaitable<void> Gateway::answer_control(const Asked& asked, const FoundRoute& route) {
  Status done = co_await control_.handle(asked.exchange, route);
  if (!done && !asked.exchange.started()) co_await asked.fail_with(std::move(done.error()));
}

async::awaitable<void> Gateway::answer_options(const Asked& asked, std::string_view allow) {
  http::ResponseHead head;
  head.status = 204;
  head.headers.add("Allow", std::string(allow));
  const http::Request& request = asked.exchange.request();
  if (access_.page_origin(request)) {
    head.headers.add("Access-Control-Allow-Methods", std::string(allow));
    if (const auto wanted = request.headers.find("Access-Control-Request-Headers"))
      head.headers.add("Access-Control-Allow-Headers", std::string(*wanted));
    head.headers.add("Access-Control-Max-Age", "600");
  }
  co_await asked.exchange.respond(std::move(head), "");
}

async::awaitable<void> Gateway::refuse_method(const Asked& asked, std::string_view allow) {
  const Error error{
      ErrorCode::method_not_allowed,
      fmt::format("{} is asked with {}", printable(asked.exchange.request().path), allow),
      Origin::client};
  const ErrorSpeech& speech =
      asked.speaks == Speaks::messages ? messages_errors() : openai_errors();
  http::ResponseHead head = error_head(error);
  head.headers.add("Allow", std::string(allow));
  const std::string body = speech.body(error, asked.id);
  co_await asked.exchange.respond(std::move(head), body);
}

}  // namespace werk::gateway
