#include "werk/gateway/event_streams.hpp"

#include <fmt/format.h>

#include <boost/asio/this_coro.hpp>
#include <charconv>
#include <optional>

#include "werk/gateway/query.hpp"

namespace werk::gateway {

using namespace std::chrono_literals;

namespace {

constexpr auto kHeartbeat = 15s;
constexpr std::string_view kHeartbeatComment = ": alive\n\n";
constexpr std::size_t kWriteBytes = 64 * 1024;

// The id that a client which comes back has seen last.
std::optional<std::uint64_t> seen_id(const http::Request& request) {
  const auto text = request.headers.find("Last-Event-ID");
  if (!text) return std::nullopt;
  std::uint64_t id = 0;
  const char* end = text->data() + text->size();
  const auto [at, error] = std::from_chars(text->data(), end, id);
  if (error != std::errc() || at != end) return std::nullopt;
  return id;
}

// "runtime" chooses every event of runtimes, "call.finished" that one; an empty list all.
bool chosen(std::string_view types, std::string_view type) {
  if (types.empty()) return true;
  while (!types.empty()) {
    const std::string_view one = types.substr(0, types.find(','));
    const bool fits = type == one || (type.starts_with(one) && type[one.size()] == '.');
    if (!one.empty() && fits) return true;
    types.remove_prefix(std::min(one.size() + 1, types.size()));
  }
  return false;
}

// What the follower hasn't got yet, up to a bound.
std::string unread(telemetry::EventFollower& follower, std::string_view types) {
  std::string out;
  while (out.size() < kWriteBytes) {
    const telemetry::Event* event = follower.next();
    if (const std::uint64_t lost = follower.take_lost(); lost > 0)
      out += fmt::format("event: lost\ndata: {{\"count\":{}}}\n\n", lost);
    if (event == nullptr) break;
    if (!chosen(types, event->type)) continue;
    out += fmt::format("id: {}\nevent: {}\ndata: {}\n\n", event->id, event->type, event->data);
  }
  return out;
}

}  // namespace

async::awaitable<Status> EventStreams::follow(http::Exchange& exchange) {
  http::ResponseHead head;
  head.headers.add("Content-Type", "text/event-stream; charset=utf-8");
  head.headers.add("Cache-Control", "no-cache");
  if (exchange.request().method == "HEAD") co_return co_await exchange.respond(std::move(head), "");
  std::string types = query_value(exchange.request().query, "types").value_or("");
  const async::Executor executor = co_await boost::asio::this_coro::executor;
  async::Event arrived(executor);
  Status told;
  {
    telemetry::EventFollower follower(feed_, seen_id(exchange.request()),
                                      [&arrived] { arrived.set(); });
    told = co_await exchange.start(std::move(head), ": events of this node\n\n");
    if (told) told = co_await pass_on_events(exchange, follower, arrived, std::move(types));
  }
  if (feed_.followers() == 0 && all_gone_ != nullptr) all_gone_->set();
  co_return told;
}

async::awaitable<Status> EventStreams::pass_on_events(http::Exchange& exchange,
                                                      telemetry::EventFollower& follower,
                                                      async::Event& arrived, std::string types) {
  while (true) {
    arrived.reset();
    const std::string out = unread(follower, types);
    if (!out.empty()) {
      Status written = co_await exchange.write(out);
      if (!written) co_return written;
      continue;
    }
    if (feed_.ended()) co_return co_await exchange.finish();
    async::Deadline quiet(clock_, kHeartbeat, exchange.gone());
    const bool woken = co_await arrived.wait(quiet.token());
    if (woken) continue;
    if (!quiet.expired()) co_return fail(ErrorCode::cancelled, "the follower has left");
    Status written = co_await exchange.write(kHeartbeatComment);
    if (!written) co_return written;
  }
}

async::awaitable<void> EventStreams::end(std::stop_token stop) {
  const async::Executor executor = co_await boost::asio::this_coro::executor;
  async::Event gone(executor);
  all_gone_ = &gone;
  feed_.end();
  if (feed_.followers() > 0) co_await gone.wait(stop);
  all_gone_ = nullptr;
}

}  // namespace werk::gateway
