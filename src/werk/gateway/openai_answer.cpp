#include "werk/gateway/openai_answer.hpp"

namespace werk::gateway {

async::awaitable<Status> OpenAiStreamAnswer::flush(const ChatStreamFacts&) {
  co_return co_await write_events(exchange_, call_, out_);
}

async::awaitable<Status> OpenAiStreamAnswer::end(const ChatStreamFacts&) {
  out_ += kChatStreamEnd;
  co_return co_await end_events(exchange_, call_, out_);
}

async::awaitable<Status> OpenAiWholeAnswer::flush(const ChatStreamFacts&) { co_return Status(); }

async::awaitable<Status> OpenAiWholeAnswer::end(const ChatStreamFacts&) {
  const std::string whole = fold_.finish();
  http::ResponseHead head;
  head.headers.add("Content-Type", "application/json");
  call_.first_byte();
  co_return co_await exchange_.respond(std::move(head), whole);
}

}  // namespace werk::gateway
