// Connector: makes the streams below a client's connections. A literal address is tried as it is; a
// name is looked up off the loop, and its addresses of both families are tried a quarter of a
// second apart or as soon as one fails, until the first of them connects (RFC 8305). Then hands are
// shaken where TLS is asked for. All of that has one limit. Owned by its Client, whose calls keep
// it alive; inside http only, loop thread only.
#pragma once

#include <memory>
#include <optional>
#include <stop_token>
#include <vector>

#include "werk/async/clock.hpp"
#include "werk/base/result.hpp"
#include "werk/http/client.hpp"
#include "werk/http/stream.hpp"
#include "werk/http/tls.hpp"

namespace werk::http {

class Connector {
 public:
  Connector(async::Executor executor, async::Clock& clock, async::Duration limit)
      : executor_(std::move(executor)), clock_(clock), limit_(limit) {}

  // engine_failed: not there, not found, or not who it should be; engine_timeout: over the limit;
  // cancelled: stopped. Messages say what to do.
  async::awaitable<Result<std::unique_ptr<Stream>>> connect(Address address, std::stop_token stop);

 private:
  struct Race;

  async::awaitable<Result<std::vector<Address>>> places_of(Address address, std::stop_token over);
  async::awaitable<Result<std::unique_ptr<Stream>>> first_of(std::vector<Address> places,
                                                             std::stop_token over);
  async::awaitable<Result<std::unique_ptr<Stream>>> race(std::vector<Address> places,
                                                         std::stop_token over);
  async::awaitable<void> run_in(Race& race, Address place);
  async::awaitable<Status> secure(Stream& stream, Address address, std::stop_token over);

  async::Executor executor_;
  async::Clock& clock_;
  async::Duration limit_;
  std::optional<TlsContext> tls_;  // from the first call that needs it
};

}  // namespace werk::http
