#include "werk/gateway/engine_call.hpp"

#include <fmt/format.h>

#include <boost/asio/this_coro.hpp>

#include "werk/async/task_group.hpp"
#include "werk/base/json_cursor.hpp"
#include "werk/gateway/engine_error.hpp"

namespace werk::gateway {

using namespace std::chrono_literals;

namespace {

constexpr std::size_t kEngineErrorBytesMax = 64 * 1024;
constexpr auto kRestWait = 200ms;
constexpr std::size_t kCountBytesMax = 16 * 1024 * 1024;  // some list the tokens too
constexpr auto kCountLimit = 60s;

http::ResponseHead event_stream_head() {
  http::ResponseHead head;
  head.headers.add("Content-Type", "text/event-stream; charset=utf-8");
  head.headers.add("Cache-Control", "no-cache");
  return head;
}

}  // namespace

async::awaitable<Status> write_events(http::Exchange& exchange, Call& call, std::string& out) {
  if (out.empty()) co_return Status();
  Status written;
  call.first_byte();
  if (exchange.started()) {
    written = co_await exchange.write(out);
  } else {
    http::ResponseHead head = event_stream_head();
    written = co_await exchange.start(std::move(head), out);
  }
  out.clear();
  co_return written;
}

async::awaitable<Status> end_events(http::Exchange& exchange, Call& call, std::string& out) {
  if (!exchange.started()) {
    Status written = co_await write_events(exchange, call, out);
    if (!written) co_return written;
  }
  call.first_byte();
  co_return co_await exchange.finish(out);
}

async::awaitable<void> refuse_call(http::Exchange& exchange, Call& call, Error error,
                                   const ErrorSpeech& speech) {
  call.failed(error);
  const bool nobody_listens =
      error.code == ErrorCode::cancelled || exchange.gone().stop_requested();
  if (nobody_listens) {
    call.status = 499;
    call.cancelled();
    if (exchange.started()) exchange.break_off();
    co_return;
  }
  if (exchange.started()) {
    const std::string event = speech.event(error, call.id());
    co_await exchange.write(event);
    exchange.break_off();
    co_return;
  }
  http::ResponseHead head = error_head(error);
  call.status = head.status;
  const std::string body = speech.body(error, call.id());
  co_await exchange.respond(std::move(head), body);
}

async::awaitable<void> conclude_call(http::Exchange& exchange, Call& call, Status outcome,
                                     const ErrorSpeech& speech) {
  if (outcome) {
    call.ended(Call::Outcome::served);
  } else {
    co_await refuse_call(exchange, call, std::move(outcome.error()), speech);
  }
}

Result<std::string> model_of(const std::optional<std::string>& named,
                             const std::optional<std::string>& default_model) {
  if (named) return *named;
  if (default_model) return *default_model;
  Error error{ErrorCode::invalid_request,
              "the request names no model, and the node was started without a default (--model ID)",
              Origin::client};
  error.param = "model";
  return fail(std::move(error));
}

TakenMembers taken_by(const engine::ChatProfile& profile) {
  return {profile.reports_progress, profile.takes_stream_options, profile.output_limit_member};
}

Result<EngineWay> way_to(engine::Runtime& runtime) {
  EngineWay way{runtime.passthrough(engine::Dialect::openai_chat), runtime.chat_port()};
  if (way.http || way.port != nullptr) return way;
  return fail(ErrorCode::unsupported, "this engine takes no chat");
}

std::optional<EngineWay> native_way_to(const engine::Runtime& runtime) {
  constexpr engine::Dialect kMessages = engine::Dialect::anthropic_messages;
  EngineWay way{runtime.passthrough(kMessages), nullptr, kMessages};
  if (!way.http) return std::nullopt;
  return way;
}

async::awaitable<Result<std::string>> EngineCall::read_body(std::uint64_t bytes_max,
                                                            BodyFeed feed) {
  exchange_.limit_body(bytes_max);
  std::string body;
  if (const auto length = exchange_.request().content_length; length && *length <= bytes_max) {
    body.reserve(std::min<std::uint64_t>(*length, std::uint64_t{1} << 20));
  }
  while (true) {
    const Result<std::string_view> piece = co_await exchange_.read_body();
    if (!piece) co_return fail(piece.error());
    if (piece->empty()) break;
    if (!hold_.add(piece->size())) {
      Error full{ErrorCode::capacity,
                 "the node holds as many request bodies as it may; try again shortly"};
      full.retry_after = 2s;
      co_return fail(std::move(full));
    }
    body += *piece;
    Status fed = feed(*piece);
    if (!fed) co_return pass_on(fed);
  }
  co_return body;
}

async::awaitable<Result<routing::SharedRoute>> EngineCall::find_route(std::string model) {
  Result<routing::SharedRoute> route =
      co_await parts_.models.route(parts_.router, std::move(model));
  if (route) call_.routed(*route);
  co_return route;
}

async::awaitable<Result<runtime::Admission>> EngineCall::admit(const routing::Route& route,
                                                               std::size_t weight,
                                                               EarlyHeaders early) {
  runtime::Ask ask;
  ask.weight = weight;
  ask.client = exchange_.request().peer;
  ask.observer = &call_;
  Result<runtime::Admission> admission = co_await wait(route, std::move(ask), early);
  if (!admission) co_return pass_on(admission);
  call_.admitted();
  co_return admission;
}

async::awaitable<Result<runtime::Admission>> EngineCall::wait(const routing::Route& route,
                                                              runtime::Ask ask,
                                                              EarlyHeaders early) {
  if (early.after <= async::Duration::zero()) {
    co_return co_await parts_.cache.admit(*route.engine, route.plan, ask, exchange_.gone());
  }
  const async::Executor executor = co_await boost::asio::this_coro::executor;
  async::TaskGroup tasks(executor);
  std::stop_source admitted;
  sign_ = early.sign;
  sign_due_at_ = parts_.clock.now() + early.after;
  // A call that needn't wait long costs a timer and no task.
  auto timer =
      parts_.clock.call_at(sign_due_at_, [&] { tasks.spawn(show_life(admitted.get_token())); });
  Result<runtime::Admission> admission =
      co_await parts_.cache.admit(*route.engine, route.plan, ask, exchange_.gone());
  timer.reset();
  admitted.request_stop();
  // One writer at a time: the answer or the error comes after the last sign.
  co_await tasks.join();
  co_return admission;
}

async::awaitable<void> EngineCall::show_life(std::stop_token admitted) {
  if (admitted.stop_requested()) co_return;
  const async::Executor executor = co_await boost::asio::this_coro::executor;
  while (true) {
    const Status shown = co_await show_sign();
    if (!shown) break;
    const bool goes_on =
        co_await async::sleep_for(parts_.clock, executor, kSignOfLifeEvery, admitted);
    if (!goes_on) break;
  }
}

bool EngineCall::sign_is_due() const {
  return !sign_.empty() && !call_.answer_has_begun() && parts_.clock.now() >= sign_due_at_;
}

async::awaitable<Status> EngineCall::show_sign() {
  sign_due_at_ = parts_.clock.now() + kSignOfLifeEvery;
  if (exchange_.started()) co_return co_await exchange_.write(sign_);
  http::ResponseHead head = event_stream_head();
  co_return co_await exchange_.start(std::move(head), sign_);
}

async::awaitable<Status> EngineCall::run(runtime::Admission& admission, const EngineWay& way,
                                         std::string_view body, ChatStreamFilter& filter,
                                         AnswerWriter& writer) {
  const CallEnd over(exchange_, admission.lease);
  Status talked;
  if (way.http) {
    talked = co_await talk(admission, *way.http, body, filter, writer, over.token());
  } else {
    talked = co_await talk_to_port(admission, *way.port, body, filter, writer, over.token());
  }
  co_return co_await settle(admission, way, filter.facts(), std::move(talked));
}

async::awaitable<Status> EngineCall::settle(runtime::Admission& admission, const EngineWay& way,
                                            const ChatStreamFacts& facts, Status talked) {
  note_tokens(facts, admission.lease);
  if (was_silent_) admission.lease.condemn_if_silent(silence_);
  const std::optional<Error>& cause = admission.lease.end_cause();
  if (!talked && cause) co_return fail(*cause);
  tell_health(admission.lease.runtime(), talked);
  if (talked || talked.error().origin != Origin::engine) co_return talked;
  Error explained = co_await explain(std::move(talked.error()), admission.lease, way);
  co_return fail(std::move(explained));
}

void EngineCall::tell_health(engine::Runtime& runtime, const Status& talked) const {
  if (talked) return runtime.call_answered();
  // A caller that left, or a node that stops, says nothing of the engine.
  if (talked.error().origin != Origin::engine) return;
  if (engine_away_) {
    runtime.call_failed(talked.error());
  } else {
    runtime.call_answered();
  }
}

async::awaitable<Status> EngineCall::talk(runtime::Admission& admission,
                                          const engine::HttpTarget& target, std::string_view body,
                                          ChatStreamFilter& filter, AnswerWriter& writer,
                                          std::stop_token over) {
  http::ClientRequest request =
      engine_request(target, target.path, "text/event-stream", body, origin());
  silence_ = target.silence.value_or(silence_);
  SilenceLimit silence(parts_.clock, silence_, over);
  const auto response = co_await ask(admission, target, std::move(request), silence);
  if (!response) co_return fail(response.error());
  http::Response& engine = **response;
  Status relayed = co_await relay(engine, silence, admission.lease, filter, writer);
  if (!relayed) co_return relayed;
  if (filter.done()) admission.permit.free();
  Status ended = co_await end(filter, writer);
  if (ended) co_await read_rest(engine);
  co_return ended;
}

async::awaitable<Result<std::unique_ptr<http::Response>>> EngineCall::ask(
    runtime::Admission& admission, const engine::HttpTarget& target, http::ClientRequest request,
    SilenceLimit& silence) {
  http::Address address = address_of(target);
  // Until the engine has said that it is finished its slot may still work for this call.
  admission.permit.quarantine();
  auto response =
      co_await parts_.client.send(std::move(address), std::move(request), silence.token());
  if (!response) {
    engine_away_ = true;
    co_return fail(gave_up(response.error(), silence));
  }
  if ((*response)->status == 200) co_return std::move(*response);
  Error refusal = co_await read_refusal(**response, silence, target);
  admission.permit.free();
  co_return fail(std::move(refusal));
}

Result<std::string_view> EngineCall::noted(const Result<std::string_view>& bytes,
                                           SilenceLimit& silence, const runtime::Lease& lease) {
  const async::TimePoint now = silence.life();
  if (bytes) {
    lease.note_life(now);
    return *bytes;
  }
  engine_away_ = true;
  return fail(gave_up(bytes.error(), silence));
}

async::awaitable<void> EngineCall::read_rest(http::Response& engine) {
  if (engine.end_is_here()) co_return;
  async::Deadline limit(parts_.clock, kRestWait, exchange_.gone());
  while (true) {
    const Result<std::string_view> rest = co_await engine.read_some(limit.token());
    if (!rest || rest->empty()) break;
  }
}

async::awaitable<Error> EngineCall::read_refusal(http::Response& engine, SilenceLimit& silence,
                                                 const engine::HttpTarget& target) {
  std::string text;
  while (text.size() < kEngineErrorBytesMax) {
    const Result<std::string_view> more = co_await engine.read_some(silence.token());
    if (!more || more->empty()) break;
    text += *more;
  }
  engine_away_ = means_away(engine.status, engine.headers);
  co_return engine_refusal(engine.status, engine.headers, text, target);
}

async::awaitable<Status> EngineCall::end(ChatStreamFilter& filter, AnswerWriter& writer) {
  Status complete = filter.finish(writer.sink());
  if (complete) co_return co_await writer.end(filter.facts());
  co_await writer.flush(filter.facts());
  co_return complete;
}

async::awaitable<Status> EngineCall::talk_to_port(runtime::Admission& admission,
                                                  engine::ChatPort& port, std::string_view body,
                                                  ChatStreamFilter& filter, AnswerWriter& writer,
                                                  std::stop_token over) {
  // Until the generation has ended its engine may still work for this call.
  admission.permit.quarantine();
  SilenceLimit silence(parts_.clock, silence_, over);
  auto stream = co_await port.chat(std::string(body), silence.token());
  if (!stream) {
    if (stream.error().origin == Origin::client) admission.permit.free();
    co_return fail(gave_up(stream.error(), silence));
  }
  while (!filter.done()) {
    Result<std::string> event = co_await (*stream)->next(silence.token());
    const async::TimePoint now = silence.life();
    if (event) admission.lease.note_life(now);
    if (!event) co_return fail(gave_up(event.error(), silence));
    silence.pause();
    Status taken = filter.event("", *event, writer.sink());
    note_piece(filter.facts(), admission.lease, now);
    // Tokens that came before a failure still reach the client.
    Status written = co_await writer.flush(filter.facts());
    if (written && sign_is_due()) written = co_await show_sign();
    silence.life();
    if (!written) co_return written;
    if (!taken) co_return taken;
  }
  admission.permit.free();
  co_return co_await end(filter, writer);
}

async::awaitable<Status> EngineCall::relay(http::Response& engine, SilenceLimit& silence,
                                           const runtime::Lease& lease, ChatStreamFilter& filter,
                                           AnswerWriter& writer) {
  while (!filter.done()) {
    const Result<std::string_view> read = co_await engine.read_some(silence.token());
    const Result<std::string_view> bytes = noted(read, silence, lease);
    if (!bytes) co_return fail(bytes.error());
    if (bytes->empty()) break;
    const async::TimePoint now = silence.last_life();
    silence.pause();
    Status relayed = co_await piece(*bytes, filter, writer);
    note_piece(filter.facts(), lease, now);
    if (relayed && sign_is_due()) relayed = co_await show_sign();
    silence.life();
    if (!relayed) co_return relayed;
  }
  Result<std::optional<http::SseItem>> last = parser_.finish();
  if (!last) co_return pass_on(last);
  const bool is_event = *last && (*last)->kind == http::SseItem::Kind::event;
  if (is_event) co_return filter.event((*last)->name, (*last)->data, writer.sink());
  co_return Status();
}

async::awaitable<Status> EngineCall::piece(std::string_view bytes, ChatStreamFilter& filter,
                                           AnswerWriter& writer) {
  parser_.feed(bytes);
  Status fed;
  // A client that has nothing yet gets the first event before the rest of a burst is looked at.
  if (!call_.answer_has_begun()) {
    fed = feed(FeedUntil::first_event, filter, writer);
    Status written = co_await writer.flush(filter.facts());
    if (!written) co_return written;
  }
  if (fed) fed = feed(FeedUntil::end, filter, writer);
  // The last piece leaves together with the end.
  if (fed && filter.done()) co_return fed;
  // Tokens that came before a failure still reach the client.
  Status written = co_await writer.flush(filter.facts());
  if (!written) co_return written;
  co_return fed;
}

Status EngineCall::feed(FeedUntil until, ChatStreamFilter& filter, AnswerWriter& writer) {
  const std::uint64_t before = filter.facts().content_events;
  while (until == FeedUntil::end || filter.facts().content_events == before) {
    Result<std::optional<http::SseItem>> item = parser_.next();
    if (!item) return pass_on(item);
    if (!*item) return {};
    if ((*item)->kind == http::SseItem::Kind::comment) continue;
    Status taken = filter.event((*item)->name, (*item)->data, writer.sink());
    if (!taken) return taken;
  }
  return {};
}

Error EngineCall::gave_up(const Error& error, const SilenceLimit& silence) {
  if (!silence.expired()) return error;
  was_silent_ = true;
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(silence_).count();
  return Error{ErrorCode::engine_timeout, fmt::format("the engine was silent for {} s", seconds),
               Origin::engine};
}

async::awaitable<Error> EngineCall::explain(Error error, runtime::Lease& lease,
                                            const EngineWay& way) {
  if (way.http) hide_key(error.message, *way.http);
  const bool engine_fault =
      error.code == ErrorCode::engine_failed || error.code == ErrorCode::engine_timeout;
  if (!engine_fault) co_return error;
  if (const std::optional<Error>& cause = lease.end_cause()) co_return *cause;
  const bool dead = co_await lease.settle_death();
  if (const std::optional<Error>& cause = lease.end_cause()) co_return *cause;
  // What nobody saw die is told by what the call met.
  const bool is_owned = !way.http || way.http->ownership == engine::Ownership::owned;
  if (dead && is_owned) error.message = "the engine died: " + lease.runtime().exit_reason();
  co_return error;
}

async::awaitable<Result<std::uint64_t>> EngineCall::count(runtime::Lease& lease,
                                                          const EngineWay& way,
                                                          std::string_view body) {
  async::Deadline limit(parts_.clock, kCountLimit, exchange_.gone());
  Result<std::uint64_t> tokens = 0;
  if (way.http) {
    tokens = co_await count_by_http(way, body, limit);
  } else {
    tokens = co_await way.port->count(std::string(body), limit.token());
  }
  if (tokens) co_return tokens;
  Error error = std::move(tokens.error());
  if (limit.expired()) {
    error = Error{ErrorCode::engine_timeout, "the engine did not count the tokens in time",
                  Origin::engine};
  }
  Error explained = co_await explain(std::move(error), lease, way);
  co_return fail(std::move(explained));
}

async::awaitable<Result<std::uint64_t>> EngineCall::count_by_http(const EngineWay& way,
                                                                  std::string_view body,
                                                                  const async::Deadline& limit) {
  const engine::HttpTarget& target = *way.http;
  if (target.count_path.empty()) {
    co_return fail(ErrorCode::unsupported, "this engine can't count tokens without generating");
  }
  http::ClientRequest request = engine_request(target, target.count_path, "", body, origin());
  if (way.dialect == engine::Dialect::anthropic_messages)
    carry_messages_headers(exchange_.request(), request.headers);
  http::Address address = address_of(target);
  auto answer = co_await parts_.client.fetch(std::move(address), std::move(request), kCountBytesMax,
                                             limit.token());
  if (!answer) co_return pass_on(answer);
  if (answer->status == 404 && target.ownership == engine::Ownership::owned)
    co_return fail(ErrorCode::unsupported, "this engine is too old to count tokens");
  if (answer->status != 200)
    co_return fail(engine_refusal(answer->status, answer->headers, answer->body, target));
  const auto counted = find_member(trim_json(answer->body), target.count_member);
  const auto tokens = json_unsigned(counted.value_or(""));
  if (tokens) co_return *tokens;
  co_return fail(ErrorCode::engine_failed, Origin::engine,
                 "the engine's count of tokens can't be read");
}

void EngineCall::note_piece(const ChatStreamFacts& facts, const runtime::Lease& lease,
                            async::TimePoint now) {
  if (facts.started && !call_.prompt_tokens) {
    call_.prompt_tokens = facts.started->prompt_tokens;
    call_.cached_tokens = facts.started->cached_tokens;
  }
  const std::uint64_t fresh = call_.piece(facts.content_events, now);
  if (fresh > 0) lease.note_output(fresh, now);
}

void EngineCall::note_tokens(const ChatStreamFacts& facts, const runtime::Lease& lease) {
  if (facts.started) {
    call_.prompt_tokens = facts.started->prompt_tokens;
    call_.cached_tokens = facts.started->cached_tokens;
  }
  if (facts.usage) {
    call_.prompt_tokens = facts.usage->prompt_tokens;
    if (facts.usage->cached_tokens) call_.cached_tokens = facts.usage->cached_tokens;
    call_.completion_tokens = facts.usage->completion_tokens;
  }
  const std::uint64_t prompt = call_.prompt_tokens.value_or(0);
  runtime::Usage usage;
  usage.prompt_tokens_cached = std::min(call_.cached_tokens.value_or(0), prompt);
  usage.prompt_tokens_new = prompt - usage.prompt_tokens_cached;
  usage.output_tokens = call_.completion_tokens.value_or(0);
  usage.tells_cached = call_.cached_tokens.has_value();
  lease.add_usage(usage);
}

}  // namespace werk::gateway
