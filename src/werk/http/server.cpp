#include "werk/http/server.hpp"

#include <unistd.h>

#include <boost/asio/posix/stream_descriptor.hpp>
#include <cerrno>
#include <unordered_set>
#include <vector>

#include "werk/async/task_group.hpp"
#include "werk/base/assert.hpp"
#include "werk/base/log.hpp"
#include "werk/http/session.hpp"
#include "werk/http/sockets.hpp"

namespace werk::http {

namespace asio = boost::asio;
using IoError = boost::system::error_code;

namespace {

constexpr std::chrono::milliseconds kTick{1000};
constexpr std::chrono::milliseconds kTickSoon{250};
// The end of a client's input may be seen before the kernel has let go of the client's own socket.
constexpr std::chrono::milliseconds kFirstLook{2};
constexpr std::chrono::milliseconds kAcceptPause{100};
constexpr int kAcceptsPerTurn = 64;
// Connections over the limit that are kept just long enough to be told so.
constexpr std::size_t kRefusedMax = 256;

bool is_exhaustion(int error) {
  return error == EMFILE || error == ENFILE || error == ENOBUFS || error == ENOMEM;
}

}  // namespace

struct Server::Impl {
  struct Listener;

  Impl(async::Executor executor, async::Clock& clock, ServerLimits limits, Handler& handler)
      : context{std::move(executor), clock, limits, handler}, group(context.executor) {
    context.look_soon = [this] { arm(kFirstLook); };
  }
  ~Impl() { stop_listening(); }

  void add_listener(Listening listening, std::string path);
  void stop_listening();
  void accept_some(Listener& listener);
  void admit(Accepted accepted, int family);
  async::awaitable<void> serve(std::unique_ptr<Session> session);
  void arm(std::chrono::milliseconds delay);
  void tick();

  ServerContext context;
  std::vector<std::shared_ptr<Listener>> listeners;
  std::unordered_set<Session*> sessions;
  std::unique_ptr<async::Timer> timer;
  async::TimePoint timer_due;
  async::TaskGroup group;
};

// Shared with the handler of its pending wait, which runs once more after the listener was closed.
struct Server::Impl::Listener : std::enable_shared_from_this<Listener> {
  Listener(Impl& server, Listening opened, std::string socket_path)
      : owner(&server),
        listening(std::move(opened)),
        path(std::move(socket_path)),
        descriptor(server.context.executor, listening.descriptor) {}

  void wait() {
    descriptor.async_wait(asio::posix::descriptor_base::wait_read,
                          [kept = shared_from_this()](const IoError& error) {
                            if (!error && kept->owner != nullptr) kept->owner->accept_some(*kept);
                          });
  }

  void close() {
    owner = nullptr;
    pause.reset();
    IoError ignored;
    descriptor.close(ignored);
    if (!path.empty()) ::unlink(path.c_str());
  }

  Impl* owner;
  Listening listening;
  std::string path;
  asio::posix::stream_descriptor descriptor;
  std::unique_ptr<async::Timer> pause;
};

void Server::Impl::add_listener(Listening listening, std::string path) {
  listeners.push_back(std::make_shared<Listener>(*this, std::move(listening), std::move(path)));
  listeners.back()->wait();
}

void Server::Impl::stop_listening() {
  for (const auto& listener : listeners) listener->close();
  listeners.clear();
}

void Server::Impl::accept_some(Listener& listener) {
  for (int turn = 0; turn < kAcceptsPerTurn; ++turn) {
    Accepted accepted = accept_one(listener.listening);
    if (accepted.descriptor >= 0) {
      admit(std::move(accepted), listener.listening.family);
    } else if (is_exhaustion(accepted.error)) {
      // The listener stays readable: waiting for that again would spin.
      log::warn("no more connections can be accepted for now: {}", os_message(accepted.error));
      listener.pause = context.clock.call_at(context.clock.now() + kAcceptPause,
                                             [&listener] { listener.wait(); });
      return;
    } else if (accepted.error == EAGAIN || accepted.error == EWOULDBLOCK) {
      break;
    }
  }
  listener.wait();
}

void Server::Impl::admit(Accepted accepted, int family) {
  const std::size_t open = sessions.size();
  const std::size_t most = context.limits.connections_max;
  if (open >= most + kRefusedMax) {
    ::close(accepted.descriptor);
    return;
  }
  const auto admission = open >= most ? Session::Admission::refuse : Session::Admission::serve;
  auto stream = std::make_unique<Stream>(context.executor, accepted.descriptor, family);
  auto session = std::make_unique<Session>(context, std::move(stream), std::move(accepted.peer),
                                           accepted.loopback, admission);
  sessions.insert(session.get());
  if (!timer) arm(kTick);
  group.spawn(serve(std::move(session)));
}

async::awaitable<void> Server::Impl::serve(std::unique_ptr<Session> session) {
  co_await session->run();
  sessions.erase(session.get());
}

void Server::Impl::arm(std::chrono::milliseconds delay) {
  const async::TimePoint due = context.clock.now() + delay;
  if (timer && timer_due <= due) return;
  timer_due = due;
  timer = context.clock.call_at(due, [this] { tick(); });
}

void Server::Impl::tick() {
  timer.reset();
  const async::TimePoint now = context.clock.now();
  bool soon = false;
  for (Session* session : sessions) {
    if (session->tick(now)) soon = true;
  }
  if (!sessions.empty()) arm(soon ? kTickSoon : kTick);
}

Server::Server(async::Executor executor, async::Clock& clock, ServerLimits limits, Handler& handler)
    : impl_(std::make_unique<Impl>(std::move(executor), clock, limits, handler)) {}
Server::~Server() = default;

void Server::set_error_body(ErrorBody renderer) { impl_->context.error_body = renderer; }

Result<Endpoint> Server::listen(const std::string& host, std::uint16_t port) {
  auto opened = open_listener(host, port);
  if (!opened) return pass_on(opened);
  const Endpoint endpoint = opened->endpoint;
  impl_->add_listener(std::move(*opened), {});
  return endpoint;
}

Status Server::listen_unix(const std::string& path) {
  auto opened = open_unix_listener(path);
  if (!opened) return pass_on(opened);
  impl_->add_listener(std::move(*opened), path);
  return Status();
}

void Server::stop_keep_alive() {
  impl_->context.draining = true;
  for (Session* session : impl_->sessions) session->close_if_idle();
}

async::awaitable<void> Server::close() {
  impl_->context.closing = true;
  impl_->stop_listening();
  for (Session* session : impl_->sessions) session->close_now();
  co_await impl_->group.join();
  impl_->timer.reset();
}

std::size_t Server::connections() const { return impl_->sessions.size(); }

}  // namespace werk::http
