#include "werk/gateway/control.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <boost/asio/this_coro.hpp>
#include <boost/json/object.hpp>
#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>

#include "werk/async/task_group.hpp"
#include "werk/base/log.hpp"
#include "werk/base/text.hpp"
#include "werk/gateway/errors.hpp"
#include "werk/gateway/query.hpp"
#include "werk/gateway/status_pages.hpp"

namespace werk::gateway {

namespace json = boost::json;

namespace {

constexpr std::uint64_t kBodyBytesMax = 64 * 1024;
constexpr auto kProgressEvery = std::chrono::milliseconds(500);
constexpr std::string_view kText = "text/plain; charset=utf-8";
constexpr std::uint64_t kLinesMax = 100'000;
constexpr std::uint64_t kLinesByDefault = 200;

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

// Off where the query doesn't name it.
Result<bool> switch_in(std::string_view query, std::string_view name) {
  const auto text = query_value(query, name);
  return text ? query_switch(name, *text) : Result<bool>(false);
}

// {"now": true}; an empty body says nothing.
Result<runtime::UnloadHow> unload_how(std::string_view query, std::string_view body) {
  const Result<bool> in_query = switch_in(query, "now");
  if (!in_query) return fail(in_query.error());
  bool now = *in_query;
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
    case RouteId::logs: co_return co_await logs(exchange, route.model_id);
    default: co_return fail(ErrorCode::internal, "this is no control route");
  }
}

async::awaitable<Status> Control::load(http::Exchange& exchange, std::string name) {
  const Result<bool> shows = switch_in(exchange.request().query, "progress");
  if (!shows) co_return fail(shows.error());
  Result<routing::SharedRoute> route = co_await parts_.models.route(parts_.router, std::move(name));
  if (!route) co_return pass_on(route);
  if (*shows) co_return co_await load_showing(exchange, std::move(*route));
  Result<std::string> page = co_await loaded(**route, exchange.gone());
  if (!page) co_return pass_on(page);
  co_return co_await answer(exchange, 200, *page);
}

async::awaitable<Result<std::string>> Control::loaded(const routing::Route& route,
                                                      std::stop_token stop) {
  Result<runtime::Lease> lease = co_await parts_.cache.acquire(*route.engine, route.plan, stop);
  if (!lease) co_return pass_on(lease);
  const std::vector<runtime::RuntimeSnapshot> all = parts_.cache.snapshot();
  const auto one = std::ranges::find(all, route.plan.key.text(), &runtime::RuntimeSnapshot::key);
  const MemoryOf memory_of = [this](int pid) { return parts_.readings.memory_of(pid); };
  if (one != all.end()) co_return runtime_page(*one, memory_of);
  // It may have died in this very turn.
  co_return fail(ErrorCode::engine_failed, Origin::engine, "the engine ended once it was loaded");
}

// A line of JSON for each sign of progress, and one for what it came to.
async::awaitable<Status> Control::load_showing(http::Exchange& exchange,
                                               routing::SharedRoute route) {
  http::ResponseHead head;
  head.headers.add("Content-Type", "application/x-ndjson");
  Status begun = co_await exchange.start(std::move(head));
  if (!begun) co_return begun;
  const async::Executor executor = co_await boost::asio::this_coro::executor;
  async::TaskGroup tasks(executor);
  std::stop_source done;
  tasks.spawn(show_progress(exchange, route->plan.key.text(), done.get_token()));
  Result<std::string> page = co_await loaded(*route, exchange.gone());
  done.request_stop();
  // One writer at a time.
  co_await tasks.join();
  const std::string last = (page ? *page : openai_error_body(page.error())) + "\n";
  Status written = co_await exchange.write(last);
  if (written) written = co_await exchange.finish();
  co_return written;
}

async::awaitable<void> Control::show_progress(http::Exchange& exchange, std::string key,
                                              std::stop_token done) {
  const async::Executor executor = co_await boost::asio::this_coro::executor;
  std::string shown;
  while (!done.stop_requested()) {
    json::object line;
    for (const runtime::RuntimeSnapshot& one : parts_.cache.snapshot()) {
      if (one.key != key || one.state == runtime::RuntimeState::ready) continue;
      const bool starts = one.state == runtime::RuntimeState::starting;
      line["state"] = runtime::name_of(one.state);
      line["progress"] = starts ? printable(one.progress) : "waits for a place";
    }
    const std::string text = json::serialize(line) + "\n";
    if (!line.empty() && text != shown) {
      const Status written = co_await exchange.write(text);
      if (!written) co_return;
      shown = text;
    }
    co_await async::sleep_for(parts_.clock, executor, kProgressEvery, done);
  }
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

// ---- what engines print

async::awaitable<Status> Control::logs(http::Exchange& exchange, std::string name) {
  const std::string& query = exchange.request().query;
  const auto lines_text = query_value(query, "lines");
  const Result<std::uint64_t> lines = lines_text ? query_number("lines", *lines_text, kLinesMax)
                                                 : Result<std::uint64_t>(kLinesByDefault);
  if (!lines) co_return fail(lines.error());
  const Result<bool> follows = switch_in(query, "follow");
  if (!follows) co_return fail(follows.error());
  engine::Masker masker = parts_.output.masker();
  std::optional<std::string> model;
  if (!name.empty()) {
    Result<std::string> found = co_await find_log(std::move(name), masker);
    if (!found) co_return pass_on(found);
    model = std::move(*found);
  }
  if (*follows && exchange.request().method == "GET")
    co_return co_await follow(exchange, std::move(model), *lines, std::move(masker));
  Result<std::string> text =
      co_await parts_.output.last_lines(std::move(model), *lines, exchange.gone());
  if (!text) co_return pass_on(text);
  http::ResponseHead head;
  head.headers.add("Content-Type", std::string(kText));
  const std::string shown = masker.apply(*text);
  co_return co_await exchange.respond(std::move(head), shown);
}

async::awaitable<Status> Control::follow(http::Exchange& exchange, std::optional<std::string> model,
                                         std::size_t lines, engine::Masker masker) {
  auto follower = co_await parts_.output.follow(std::move(model), lines, exchange.gone());
  if (!follower) co_return pass_on(follower);
  http::ResponseHead head;
  head.headers.add("Content-Type", std::string(kText));
  head.headers.add("Cache-Control", "no-cache");
  Status written = co_await exchange.start(std::move(head));
  while (written) {
    const Result<std::string> text = co_await (*follower)->next(exchange.gone());
    if (!text) co_return fail(text.error());
    if (text->empty()) break;
    const std::string shown = masker.apply(*text);
    written = co_await exchange.write(shown);
  }
  if (written) written = co_await exchange.finish();
  co_return written;
}

async::awaitable<Result<std::string>> Control::find_log(std::string name, engine::Masker& masker) {
  const auto catalogue = co_await parts_.models.current();
  if (const model::InstalledModel* model = parts_.router.find(*catalogue, name)) {
    for (const model::ManifestFile& file : model->manifest.files)
      masker.hide(model->path_of(file).string(), "<model>");
    co_return model->manifest.id;
  }
  // A model that was removed leaves its log.
  if (parts_.output.files().holds(name)) co_return name;
  Result<routing::Route> refusal = parts_.router.route(*catalogue, name);
  if (!refusal) co_return pass_on(refusal);
  co_return fail(ErrorCode::internal, "the model list changed; ask again");
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
    const Result<routing::SharedRoute> route =
        co_await parts_.models.route(parts_.router, which.model);
    if (route) which.key = (*route)->plan.key;
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
