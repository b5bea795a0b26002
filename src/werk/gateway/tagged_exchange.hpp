// TaggedExchange: an exchange whose answer, whichever it is, carries some headers besides its own:
// the request's id and what a browser must be told. It lends them to the exchange it wraps, so that
// nobody who answers has to think of them. Lives as long as one Gateway::handle(); loop thread
// only.
#pragma once

#include <utility>

#include "werk/http/exchange.hpp"

namespace werk::gateway {

class TaggedExchange final : public http::Exchange {
 public:
  TaggedExchange(http::Exchange& inner, http::Headers tags)
      : inner_(inner), tags_(std::move(tags)) {}

  const http::Request& request() const override { return inner_.request(); }
  void limit_body(std::uint64_t bytes_max) override { inner_.limit_body(bytes_max); }
  async::awaitable<Result<std::string_view>> read_body() override { return inner_.read_body(); }
  std::stop_token gone() const override { return inner_.gone(); }
  async::awaitable<Status> respond(http::ResponseHead head, std::string_view body) override {
    tag(head);
    return inner_.respond(std::move(head), body);
  }
  async::awaitable<Status> start(http::ResponseHead head, std::string_view first) override {
    tag(head);
    return inner_.start(std::move(head), first);
  }
  async::awaitable<Status> write(std::string_view bytes) override { return inner_.write(bytes); }
  async::awaitable<Status> finish(std::string_view last) override { return inner_.finish(last); }
  void break_off() override { inner_.break_off(); }
  bool started() const override { return inner_.started(); }

 private:
  void tag(http::ResponseHead& head) const {
    for (const http::Header& field : tags_) head.headers.add(field.name, field.value);
  }

  http::Exchange& inner_;
  http::Headers tags_;
};

}  // namespace werk::gateway
