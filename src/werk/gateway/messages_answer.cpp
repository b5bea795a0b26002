#include "werk/gateway/messages_answer.hpp"

namespace werk::gateway {

using namespace std::chrono_literals;

namespace {

constexpr auto kPingAfter = 5s;

}  // namespace

MessagesStreamAnswer::MessagesStreamAnswer(http::Exchange& exchange, Call& call,
                                           async::Clock& clock, const ChatStreamFacts& facts,
                                           MessagesStreamOptions options, ChunkEventsOptions events)
    : exchange_(exchange),
      call_(call),
      clock_(clock),
      written_at_(clock.now()),
      stream_(std::move(options), out_),
      events_(facts, stream_, events) {}

async::awaitable<Status> MessagesStreamAnswer::flush(const ChatStreamFacts&) {
  Status advanced = events_.advance();
  const bool silent = out_.empty() && stream_.started() && clock_.now() - written_at_ >= kPingAfter;
  if (silent) stream_.ping();
  Status written = co_await write();
  if (!written) co_return written;
  co_return advanced;
}

async::awaitable<Status> MessagesStreamAnswer::end(const ChatStreamFacts&) {
  Status finished = events_.finish();
  if (finished) co_return co_await end_events(exchange_, call_, out_);
  Status written = co_await write();
  if (!written) co_return written;
  co_return finished;
}

async::awaitable<Status> MessagesStreamAnswer::write() {
  if (!out_.empty()) written_at_ = clock_.now();
  co_return co_await write_events(exchange_, call_, out_);
}

MessagesWholeAnswer::MessagesWholeAnswer(http::Exchange& exchange, Call& call,
                                         const ChatStreamFacts& facts, MessagesFoldOptions options,
                                         ChunkEventsOptions events)
    : exchange_(exchange), call_(call), fold_(std::move(options)), events_(facts, fold_, events) {}

async::awaitable<Status> MessagesWholeAnswer::flush(const ChatStreamFacts&) {
  co_return events_.advance();
}

async::awaitable<Status> MessagesWholeAnswer::end(const ChatStreamFacts&) {
  Status finished = events_.finish();
  if (!finished) co_return finished;
  Result<std::string> whole = fold_.finish();
  if (!whole) co_return pass_on(whole);
  http::ResponseHead head;
  head.headers.add("Content-Type", "application/json");
  call_.first_byte();
  co_return co_await exchange_.respond(std::move(head), *whole);
}

}  // namespace werk::gateway
