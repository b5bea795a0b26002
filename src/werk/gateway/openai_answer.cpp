#include "werk/gateway/openai_answer.hpp"

namespace werk::gateway {

async::awaitable<Status> OpenAiStreamAnswer::flush(const ChatStreamFacts&) {
  if (out_.empty()) co_return Status();
  Status written;
  call_.first_byte();
  if (exchange_.started()) {
    written = co_await exchange_.write(out_);
  } else {
    http::ResponseHead head;
    head.headers.add("Content-Type", "text/event-stream; charset=utf-8");
    head.headers.add("Cache-Control", "no-cache");
    written = co_await exchange_.start(std::move(head), out_);
  }
  out_.clear();
  co_return written;
}

async::awaitable<Status> OpenAiStreamAnswer::end(const ChatStreamFacts& facts) {
  out_ += kChatStreamEnd;
  Status written = co_await flush(facts);
  if (!written) co_return written;
  co_return co_await exchange_.finish();
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
