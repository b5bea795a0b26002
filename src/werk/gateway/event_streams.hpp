// EventStreams: GET /werk/v1/events, the node's events as server-sent ones to whoever follows. A
// follower that is slow loses events and is told how many; a comment now and then shows that the
// connection lives. Owned by the gateway, which awaits end() before the server closes; loop thread
// only.
#pragma once

#include <stop_token>
#include <string>

#include "werk/async/clock.hpp"
#include "werk/async/event.hpp"
#include "werk/http/exchange.hpp"
#include "werk/telemetry/event_feed.hpp"

namespace werk::gateway {

class EventStreams {
 public:
  // Both borrowed.
  EventStreams(async::Clock& clock, telemetry::EventFeed& feed) : clock_(clock), feed_(feed) {}
  EventStreams(const EventStreams&) = delete;
  EventStreams& operator=(const EventStreams&) = delete;

  // Answers until the client leaves or the feed ends. `?types=runtime,call.finished` chooses.
  async::awaitable<Status> follow(http::Exchange& exchange);
  // Every follower gets what is left and a proper end; returns when they are gone or `stop` says
  // so.
  async::awaitable<void> end(std::stop_token stop);

 private:
  async::awaitable<Status> pass_on_events(http::Exchange& exchange,
                                          telemetry::EventFollower& follower, async::Event& arrived,
                                          std::string types);

  async::Clock& clock_;
  telemetry::EventFeed& feed_;
  async::Event* all_gone_ = nullptr;  // whoever ends the feed waits for it
};

}  // namespace werk::gateway
