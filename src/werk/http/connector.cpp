#include "werk/http/connector.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <boost/asio/ip/tcp.hpp>
#include <cerrno>

#include "werk/async/event.hpp"
#include "werk/async/task_group.hpp"
#include "werk/http/sockets.hpp"

namespace werk::http {

namespace asio = boost::asio;

namespace {

// How often a Unix listener whose line is full is asked again.
constexpr std::chrono::milliseconds kBusyPause{5};
// What RFC 8305 recommends between two attempts.
constexpr std::chrono::milliseconds kStagger{250};

tl::unexpected<Error> unreachable(std::string message) {
  return fail(ErrorCode::engine_failed, Origin::engine, std::move(message));
}

// What the system calls the fault of an address, and what a person can do about it.
Error refused(const Address& address, int error) {
  std::string message =
      fmt::format("cannot connect to {}: {}", text_of(address), os_message(error));
  if (address.unix_path.empty() && error == ECONNREFUSED)
    message += "; nothing listens there: start the server, or correct its host and port";
  return Error{ErrorCode::engine_failed, std::move(message), Origin::engine};
}

struct Attempt {
  std::unique_ptr<Stream> stream;
  int error = 0;
};

async::awaitable<Attempt> attempt(async::Executor executor, Address address, std::stop_token stop) {
  Attempt result;
  const Connecting begun = begin_to_connect(address);
  result.error = begun.error;
  if (begun.descriptor < 0) co_return result;
  result.stream = std::make_unique<Stream>(executor, begun.descriptor, begun.family);
  if (begun.error == 0) co_return result;
  const auto close_now = [&result] { result.stream->close(); };
  const std::stop_callback on_stop(stop, close_now);
  if (!stop.stop_requested()) co_await result.stream->writable();
  result.error = stop.stop_requested() ? ECANCELED : connect_error(result.stream->descriptor());
  co_return result;
}

// A name being looked up. Shared with the resolver's handler: a look-up can't be stopped, only left
// behind.
struct Lookup {
  explicit Lookup(const async::Executor& executor) : resolver(executor), done(executor) {}
  asio::ip::tcp::resolver resolver;
  async::Event done;
  boost::system::error_code error;
  std::vector<Address> found;
};

// The resolver's order says which family works better here; of each the best comes first.
void alternate_families(std::vector<Address>& found) {
  const auto is_six = [](const Address& each) { return each.host.find(':') != std::string::npos; };
  if (found.empty()) return;
  const bool six_first = is_six(found.front());
  std::vector<Address> first;
  std::vector<Address> other;
  for (Address& each : found)
    (is_six(each) == six_first ? first : other).push_back(std::move(each));
  found.clear();
  for (std::size_t at = 0; at < std::max(first.size(), other.size()); ++at) {
    if (at < first.size()) found.push_back(std::move(first[at]));
    if (at < other.size()) found.push_back(std::move(other[at]));
  }
}

}  // namespace

// The attempts on several addresses of one name. Lives in race()'s frame, which joins them.
struct Connector::Race {
  explicit Race(const async::Executor& executor) : changed(executor) {}
  async::Event changed;  // an attempt has ended
  std::stop_source over;
  std::unique_ptr<Stream> winner;
  std::size_t running = 0;
  Address last;
  int error = 0;
};

async::awaitable<Result<std::unique_ptr<Stream>>> Connector::connect(Address address,
                                                                     std::stop_token stop) {
  const async::Deadline deadline(clock_, limit_, stop);
  auto places = co_await places_of(address, deadline.token());
  Result<std::unique_ptr<Stream>> made;
  if (places) {
    made = co_await first_of(std::move(*places), deadline.token());
  } else {
    made = pass_on(places);
  }
  if (made && !address.tls_name.empty()) {
    Status secured = co_await secure(**made, address, deadline.token());
    if (!secured) made = pass_on(secured);
  }
  if (stop.stop_requested())
    co_return fail(ErrorCode::cancelled, "the request to the engine was stopped");
  if (!made && deadline.expired()) {
    co_return fail(ErrorCode::engine_timeout, Origin::engine,
                   fmt::format("connecting to {} took too long", text_of(address)));
  }
  co_return made;
}

async::awaitable<Result<std::vector<Address>>> Connector::places_of(Address address,
                                                                    std::stop_token over) {
  std::vector<Address> known = known_places(address);
  if (!known.empty()) co_return known;
  const auto lookup = std::make_shared<Lookup>(executor_);
  const auto on_found = [lookup, port = address.port](
                            const boost::system::error_code& error,
                            const asio::ip::tcp::resolver::results_type& results) {
    lookup->error = error;
    for (const auto& each : results)
      lookup->found.push_back(Address{{}, each.endpoint().address().to_string(), port});
    lookup->done.set();
  };
  lookup->resolver.async_resolve(address.host, std::to_string(address.port), on_found);
  const bool looked_up = co_await lookup->done.wait(over);
  if (!looked_up) co_return unreachable("the name was not found in time");
  if (lookup->error || lookup->found.empty()) {
    co_return unreachable(fmt::format(
        "cannot find '{}': {}; check the name, and that this machine's name service knows it",
        address.host, lookup->error ? lookup->error.message() : "it has no address"));
  }
  alternate_families(lookup->found);
  co_return std::move(lookup->found);
}

async::awaitable<Result<std::unique_ptr<Stream>>> Connector::first_of(std::vector<Address> places,
                                                                      std::stop_token over) {
  if (places.size() > 1) co_return co_await race(std::move(places), over);
  for (;;) {
    Attempt made = co_await attempt(executor_, places.front(), over);
    if (made.error == 0) co_return std::move(made.stream);
    if (made.error != EAGAIN || over.stop_requested())
      co_return fail(refused(places.front(), made.error));
    co_await async::sleep_for(clock_, executor_, kBusyPause, over);
  }
}

async::awaitable<Result<std::unique_ptr<Stream>>> Connector::race(std::vector<Address> places,
                                                                  std::stop_token over) {
  Race race(executor_);
  const auto end_it = [&race] { race.over.request_stop(); };
  const std::stop_callback ended(over, end_it);
  async::TaskGroup attempts(executor_);
  for (const Address& place : places) {
    if (race.winner || over.stop_requested()) break;
    ++race.running;
    race.changed.reset();
    attempts.spawn(run_in(race, place));
    const async::Deadline stagger(clock_, kStagger, race.over.get_token());
    co_await race.changed.wait(stagger.token());
  }
  while (!race.winner && race.running > 0) {
    race.changed.reset();
    co_await race.changed.wait();
  }
  race.over.request_stop();
  co_await attempts.join();
  if (race.winner) co_return std::move(race.winner);
  co_return fail(refused(race.last, race.error));
}

async::awaitable<void> Connector::run_in(Race& race, Address place) {
  Attempt made = co_await attempt(executor_, place, race.over.get_token());
  --race.running;
  race.changed.set();
  if (made.error == 0 && !race.winner) {
    race.winner = std::move(made.stream);
    race.over.request_stop();
  } else if (made.error != 0 && made.error != ECANCELED) {
    race.last = place;
    race.error = made.error;
  }
}

async::awaitable<Status> Connector::secure(Stream& stream, Address address, std::stop_token over) {
  if (!tls_) {
    Result<TlsContext> opened = TlsContext::open();
    if (!opened) co_return pass_on(opened);
    tls_.emplace(std::move(*opened));
  }
  const auto close_now = [&stream] { stream.close(); };
  const std::stop_callback on_stop(over, close_now);
  auto session = tls_->session(stream.descriptor(), address.tls_name);
  const bool secured = co_await stream.secure(std::move(session));
  if (secured) co_return Status();
  co_return unreachable(
      fmt::format("cannot connect to {}: {}", text_of(address), stream.tls()->failure()));
}

}  // namespace werk::http
