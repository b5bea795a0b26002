#include "werk/http/client.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "werk/http/client_connection.hpp"
#include "werk/http/connector.hpp"

namespace werk::http {

struct Client::Pool {
  Pool(async::Executor loop, async::Clock& time, ClientProfile client_profile)
      : connector(std::move(loop), time, client_profile.connect_limit),
        clock(time),
        profile(client_profile) {}

  std::unique_ptr<ClientConnection> take(const Address& address);
  void give_back(std::unique_ptr<ClientConnection> connection);
  void drop(const ClientConnection* connection);
  void drop_old();

  Connector connector;
  async::Clock& clock;
  ClientProfile profile;
  std::vector<std::unique_ptr<ClientConnection>> idle;  // the longest idle first
  std::unique_ptr<async::Timer> timer;
};

// The one used last is the one least likely to be closed by the engine.
std::unique_ptr<ClientConnection> Client::Pool::take(const Address& address) {
  if (idle.empty()) return nullptr;
  const async::TimePoint oldest = clock.now() - profile.idle_max;
  for (std::size_t at = idle.size(); at-- > 0;) {
    if (idle[at]->address() != address || idle[at]->idle_since < oldest) continue;
    std::unique_ptr<ClientConnection> found = std::move(idle[at]);
    idle.erase(idle.begin() + static_cast<std::ptrdiff_t>(at));
    found->stream().on_end(Stream::Watch::end_only, nullptr);
    return found;
  }
  return nullptr;
}

void Client::Pool::give_back(std::unique_ptr<ClientConnection> connection) {
  if (!profile.reuse || connection->uses() >= profile.uses_max || profile.idle_connections_max == 0)
    return;
  if (idle.size() >= profile.idle_connections_max) idle.erase(idle.begin());
  const ClientConnection* place = connection.get();
  connection->idle_since = clock.now();
  // An idle connection on which anything happens is of no use any more.
  connection->stream().forget_consumed();
  connection->stream().on_end(Stream::Watch::end_or_bytes, [this, place] { drop(place); });
  connection->stream().read_ahead();
  idle.push_back(std::move(connection));
  if (!timer) timer = clock.call_at(clock.now() + profile.idle_max, [this] { drop_old(); });
}

void Client::Pool::drop(const ClientConnection* connection) {
  std::erase_if(idle, [connection](const auto& entry) { return entry.get() == connection; });
}

void Client::Pool::drop_old() {
  timer.reset();
  const async::TimePoint oldest = clock.now() - profile.idle_max;
  std::erase_if(idle, [oldest](const auto& entry) { return entry->idle_since <= oldest; });
  if (idle.empty()) return;
  timer = clock.call_at(idle.front()->idle_since + profile.idle_max, [this] { drop_old(); });
}

struct Response::Impl {
  std::weak_ptr<Client::Pool> pool;
  std::unique_ptr<ClientConnection> connection;
};

Response::Response(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}

Response::~Response() {
  const auto pool = impl_->pool.lock();
  if (pool && impl_->connection->reusable()) pool->give_back(std::move(impl_->connection));
}

async::awaitable<Result<std::string_view>> Response::read_some(std::stop_token stop) {
  return impl_->connection->read_some(std::move(stop));
}

bool Response::end_is_here() { return impl_->connection->end_is_here(); }

namespace {

Error error_of(ClientConnection::Outcome outcome, std::string_view complaint) {
  using Outcome = ClientConnection::Outcome;
  if (outcome == Outcome::stopped)
    return Error{ErrorCode::cancelled, "the request to the engine was stopped"};
  Error error{ErrorCode::engine_failed, "the engine closed the connection without an answer",
              Origin::engine};
  if (outcome == Outcome::broken)
    error.message = "the engine closed the connection within the head of its answer";
  if (outcome == Outcome::malformed) {
    error.message =
        fmt::format("the engine's answer is malformed: {}",
                    complaint.empty() ? "the head of the message is too large" : complaint);
  }
  return error;
}

}  // namespace

Client::Client(async::Executor executor, async::Clock& clock, ClientProfile profile)
    : pool_(std::make_shared<Pool>(std::move(executor), clock, profile)) {}
Client::~Client() = default;

std::size_t Client::idle_connections() const { return pool_->idle.size(); }

async::awaitable<Result<std::unique_ptr<Response>>> Client::send(Address address,
                                                                 ClientRequest request,
                                                                 std::stop_token stop) {
  using Outcome = ClientConnection::Outcome;
  const std::shared_ptr<Pool> pool = pool_;
  const Persistence persistence =
      pool->profile.reuse ? Persistence::keep_alive : Persistence::close;
  std::unique_ptr<ClientConnection> connection =
      pool->profile.reuse ? pool->take(address) : nullptr;
  for (;;) {
    const bool fresh = connection == nullptr;
    if (fresh) {
      auto stream = co_await pool->connector.connect(address, stop);
      if (!stream) co_return pass_on(stream);
      connection = std::make_unique<ClientConnection>(std::move(*stream), address,
                                                      pool->profile.head_bytes_max);
    }
    ResponseHead head;
    const Outcome outcome = co_await connection->ask(request, head, persistence, stop);
    if (outcome == Outcome::head) {
      auto impl = std::make_unique<Response::Impl>();
      impl->pool = pool;
      impl->connection = std::move(connection);
      auto response = std::make_unique<Response>(std::move(impl));
      response->status = head.status;
      response->headers = std::move(head.headers);
      co_return response;
    }
    if (outcome != Outcome::lost || fresh)
      co_return fail(error_of(outcome, connection->complaint()));
    // The engine had closed the kept connection before it could see this request: nothing was done
    // twice.
    connection.reset();
  }
}

async::awaitable<Result<Whole>> Client::fetch(Address address, ClientRequest request,
                                              std::size_t body_bytes_max, std::stop_token stop) {
  auto sent = co_await send(std::move(address), std::move(request), stop);
  if (!sent) co_return pass_on(sent);
  Response& response = **sent;
  Whole whole;
  whole.status = response.status;
  whole.headers = std::move(response.headers);
  for (;;) {
    auto piece = co_await response.read_some(stop);
    if (!piece) co_return pass_on(piece);
    if (piece->empty()) co_return whole;
    if (whole.body.size() + piece->size() > body_bytes_max) {
      co_return fail(
          ErrorCode::engine_failed, Origin::engine,
          fmt::format("the engine's answer is longer than the {} bytes expected", body_bytes_max));
    }
    whole.body.append(*piece);
  }
}

}  // namespace werk::http
