// EngineCall's way to a server that speaks the client's own dialect: nothing is translated.
#include "werk/gateway/engine_call.hpp"
#include "werk/gateway/messages_relay.hpp"

namespace werk::gateway {

namespace {

constexpr std::size_t kWholeBytesMax = std::size_t{64} << 20;

}  // namespace

async::awaitable<Status> EngineCall::run_native(runtime::Admission& admission, const EngineWay& way,
                                                std::string_view body, MessagesRelay& relay) {
  const CallEnd over(exchange_, admission.lease);
  Status talked = co_await talk_native(admission, *way.http, body, relay, over.token());
  co_return co_await settle(admission, way, relay.facts(), std::move(talked));
}

async::awaitable<Status> EngineCall::talk_native(runtime::Admission& admission,
                                                 const engine::HttpTarget& target,
                                                 std::string_view body, MessagesRelay& relay,
                                                 std::stop_token over) {
  const bool streams = relay.form() == MessagesRelay::Form::events;
  http::ClientRequest request = engine_request(
      target, target.path, streams ? "text/event-stream" : "application/json", body, origin());
  carry_messages_headers(exchange_.request(), request.headers);
  silence_ = target.silence.value_or(silence_);
  SilenceLimit silence(parts_.clock, silence_, over);
  const auto response = co_await ask(admission, target, std::move(request), silence);
  if (!response) co_return fail(response.error());
  http::Response& engine = **response;
  if (!streams) co_return co_await relay_whole(engine, silence, admission, relay);
  std::string out;
  Status relayed = co_await relay_events(engine, silence, admission.lease, relay, out);
  if (!relayed) {
    // What came before a failure still reaches the client.
    Status written = co_await write_events(exchange_, call_, out);
    if (!written) co_return written;
    co_return relayed;
  }
  admission.permit.free();
  Status ended = co_await end_events(exchange_, call_, out);
  if (ended) co_await read_rest(engine);
  co_return ended;
}

async::awaitable<Status> EngineCall::relay_events(http::Response& engine, SilenceLimit& silence,
                                                  const runtime::Lease& lease,
                                                  MessagesRelay& relay, std::string& out) {
  while (!relay.done()) {
    const Result<std::string_view> read = co_await engine.read_some(silence.token());
    const Result<std::string_view> bytes = noted(read, silence, lease);
    if (!bytes) co_return fail(bytes.error());
    if (bytes->empty()) break;
    const async::TimePoint now = silence.last_life();
    silence.pause();
    parser_.feed(*bytes);
    Status fed = feed_relay(relay, out);
    note_piece(relay.facts(), lease, now);
    if (!fed) co_return fed;
    if (relay.done()) break;
    Status written = co_await write_events(exchange_, call_, out);
    if (written && sign_is_due()) written = co_await show_sign();
    silence.life();
    if (!written) co_return written;
  }
  Result<std::optional<http::SseItem>> last = parser_.finish();
  if (!last) co_return pass_on(last);
  const bool is_event = *last && (*last)->kind == http::SseItem::Kind::event;
  if (is_event) {
    Status fed = relay.event((*last)->name, (*last)->data, out);
    if (!fed) co_return fed;
  }
  co_return relay.finish();
}

Status EngineCall::feed_relay(MessagesRelay& relay, std::string& out) {
  while (true) {
    Result<std::optional<http::SseItem>> item = parser_.next();
    if (!item) return pass_on(item);
    if (!*item) return {};
    if ((*item)->kind == http::SseItem::Kind::comment) continue;
    Status taken = relay.event((*item)->name, (*item)->data, out);
    if (!taken) return taken;
  }
}

async::awaitable<Status> EngineCall::relay_whole(http::Response& engine, SilenceLimit& silence,
                                                 runtime::Admission& admission,
                                                 MessagesRelay& relay) {
  std::string text;
  while (true) {
    const Result<std::string_view> read = co_await engine.read_some(silence.token());
    const Result<std::string_view> bytes = noted(read, silence, admission.lease);
    if (!bytes) co_return fail(bytes.error());
    if (bytes->empty()) break;
    if (text.size() + bytes->size() > kWholeBytesMax)
      co_return fail(ErrorCode::engine_failed, Origin::engine, "the engine's answer is too long");
    text += *bytes;
  }
  admission.permit.free();
  Result<std::string> whole = relay.whole(text);
  if (!whole) co_return pass_on(whole);
  http::ResponseHead head;
  head.headers.add("Content-Type", "application/json");
  call_.first_byte();
  co_return co_await exchange_.respond(std::move(head), *whole);
}

}  // namespace werk::gateway
