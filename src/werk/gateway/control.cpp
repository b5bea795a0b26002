#include "werk/gateway/control.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <boost/json/object.hpp>
#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>

#include "werk/base/log.hpp"
#include "werk/base/text.hpp"
#include "werk/gateway/query.hpp"
#include "werk/gateway/status_pages.hpp"

namespace werk::gateway {

namespace json = boost::json;

namespace {

constexpr std::uint64_t kBodyBytesMax = 64 * 1024;

async::awaitable<Result<std::string>> read_whole(http::Exchange& exchange) {
  exchange.limit_body(kBodyBytesMax);
  std::string body;
  while (true) {
    const Result<std::string_view> piece = co_await exchange.read_body();
    if (!piece) co_return fail(piece.error());
    if (piece->empty()) co_return body;
    body += *piece;
  }
}

async::awaitable<Status> answer(http::Exchange& exchange, const int status,
                                const std::string& body) {
  http::ResponseHead head;
  head.status = status;
  head.headers.add("Content-Type", "application/json");
  co_return co_await exchange.respond(std::move(head), body);
}

Error bad_body(std::string message, std::string param = {}) {
  Error error{ErrorCode::invalid_request, std::move(message), Origin::client};
  error.param = std::move(param);
  return error;
}

// {"now": true}; an empty body says nothing.
Result<runtime::UnloadHow> unload_how(std::string_view query, std::string_view body) {
  bool now = false;
  if (const auto text = query_value(query, "now")) {
    const Result<bool> given = query_switch("now", *text);
    if (!given) return fail(given.error());
    now = *given;
  }
  if (trim(body).empty()) return now ? runtime::UnloadHow::now : runtime::UnloadHow::after_calls;
  boost::system::error_code error;
  const json::value value = json::parse(body, error);
  const json::object* object = error ? nullptr : value.if_object();
  if (object == nullptr) return fail(bad_body("the body is not a JSON object"));
  if (const json::value* member = object->if_contains("now")) {
    if (!member->is_bool()) return fail(bad_body("\"now\" is true or false", "now"));
    now = now || member->get_bool();
  }
  return now ? runtime::UnloadHow::now : runtime::UnloadHow::after_calls;
}

}  // namespace

async::awaitable<Status> Control::handle(http::Exchange& exchange, const FoundRoute& route) {
  Result<std::string> body = co_await read_whole(exchange);
  if (!body) co_return pass_on(body);
  switch (route.id) {
    case RouteId::load_model: co_return co_await load(exchange, route.model_id);
    case RouteId::unload_model: {
      co_return co_await unload(exchange, route.model_id, std::move(*body));
    }
    case RouteId::pin_model: co_return co_await pin(exchange, route.model_id, runtime::Pinned::yes);
    case RouteId::unpin_model:
      co_return co_await pin(exchange, route.model_id, runtime::Pinned::no);
    case RouteId::stop: co_return co_await stop(exchange);
    default: co_return fail(ErrorCode::internal, "this is no control route");
  }
}

async::awaitable<Status> Control::load(http::Exchange& exchange, std::string name) {
  Result<routing::Route> route = co_await parts_.models.route(parts_.router, std::move(name));
  if (!route) co_return pass_on(route);
  const std::string key = route->plan.key.text();
  Result<runtime::Lease> lease =
      co_await parts_.cache.acquire(*route->engine, std::move(route->plan), exchange.gone());
  if (!lease) co_return pass_on(lease);
  const std::vector<runtime::RuntimeSnapshot> all = parts_.cache.snapshot();
  const auto loaded = std::ranges::find(all, key, &runtime::RuntimeSnapshot::key);
  // It may have died in this very turn.
  if (loaded == all.end())
    co_return fail(ErrorCode::engine_failed, Origin::engine, "the engine ended once it was loaded");
  const std::string page = runtime_page(*loaded);
  co_return co_await answer(exchange, 200, page);
}

async::awaitable<Status> Control::unload(http::Exchange& exchange, std::string name,
                                         std::string body) {
  const Result<runtime::UnloadHow> how = unload_how(exchange.request().query, body);
  if (!how) co_return fail(how.error());
  Result<runtime::ModelRuntimes> which = co_await find(std::move(name));
  if (!which) co_return pass_on(which);
  json::object page;
  page["model"] = which->model;
  Result<std::size_t> ended =
      co_await parts_.cache.unload(std::move(*which), *how, exchange.gone());
  if (!ended) co_return pass_on(ended);
  page["unloaded"] = *ended;
  const std::string text = json::serialize(page);
  co_return co_await answer(exchange, 200, text);
}

async::awaitable<Status> Control::pin(http::Exchange& exchange, std::string name,
                                      runtime::Pinned pinned) {
  Result<runtime::ModelRuntimes> which = co_await find(std::move(name));
  if (!which) co_return pass_on(which);
  parts_.cache.pin(*which, pinned);
  log::info("{} is {}", which->model,
            pinned == runtime::Pinned::yes ? "pinned" : "no longer pinned");
  const std::vector<runtime::RuntimeSnapshot> all = parts_.cache.snapshot();
  const bool loaded = std::ranges::any_of(all, [&](const runtime::RuntimeSnapshot& one) {
    return one.model == which->model || (which->key && one.key == which->key->text());
  });
  json::object page;
  page["model"] = which->model;
  page["pinned"] = pinned == runtime::Pinned::yes;
  page["loaded"] = loaded;
  const std::string text = json::serialize(page);
  co_return co_await answer(exchange, 200, text);
}

async::awaitable<Status> Control::stop(http::Exchange& exchange) {
  log::info("asked to stop");
  json::object page;
  page["status"] = "stopping";
  page["calls"] = parts_.calls.active;
  const std::string text = json::serialize(page);
  // Whoever asked may be gone before it has the answer; the node stops all the same.
  Status answered = co_await answer(exchange, 202, text);
  if (on_stop_) on_stop_();
  co_return answered;
}

async::awaitable<Result<runtime::ModelRuntimes>> Control::find(std::string name) {
  const auto catalogue = co_await parts_.models.current();
  runtime::ModelRuntimes which;
  if (const model::InstalledModel* model = parts_.router.find(*catalogue, name)) {
    which.model = model->manifest.id;
    const Result<routing::Route> route = co_await parts_.models.route(parts_.router, which.model);
    if (route) which.key = route->plan.key;
    co_return which;
  }
  which.model = std::move(name);
  const std::vector<runtime::RuntimeSnapshot> all = parts_.cache.snapshot();
  const std::vector<std::string> pins = parts_.cache.pins();
  const bool loaded =
      std::ranges::find(all, which.model, &runtime::RuntimeSnapshot::model) != all.end();
  const bool pinned = std::ranges::find(pins, which.model) != pins.end();
  if (loaded || pinned) co_return which;
  Result<routing::Route> refusal = parts_.router.route(*catalogue, which.model);
  if (!refusal) co_return pass_on(refusal);
  co_return fail(ErrorCode::internal, "the model list changed; ask again");
}

}  // namespace werk::gateway
