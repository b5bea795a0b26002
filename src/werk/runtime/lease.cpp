#include "werk/runtime/lease.hpp"

#include <fmt/format.h>

#include <boost/asio/post.hpp>

#include "werk/runtime/runtime_cache.hpp"

namespace werk::runtime {

using namespace std::chrono_literals;

Permit& Permit::operator=(Permit&& other) noexcept {
  if (this == &other) return *this;
  give_back();
  instance_ = std::move(other.instance_);
  call_ = other.call_;
  after_ = other.after_;
  return *this;
}

Permit::~Permit() { give_back(); }

void Permit::give_back() {
  if (!instance_) return;
  const async::Executor executor = instance_->runtime().exited().executor();
  boost::asio::post(executor, [instance = std::move(instance_), call = call_, after = after_] {
    instance->leave(call, after);
  });
}

Lease& Lease::operator=(Lease&& other) noexcept {
  if (this == &other) return *this;
  give_back();
  cache_ = other.cache_;
  instance_ = std::move(other.instance_);
  entry_ = other.entry_;
  ticket_ = other.ticket_;
  return *this;
}

Lease::~Lease() { give_back(); }

void Lease::give_back() {
  if (!instance_) return;
  instance_.reset();
  boost::asio::post(cache_->executor_, [cache = cache_, entry = entry_, ticket = ticket_] {
    cache->release(entry, ticket);
  });
}

async::awaitable<Result<Permit>> Lease::permit(std::size_t weight, std::string client,
                                               std::stop_token stop) {
  const std::shared_ptr<Instance> instance = instance_;
  const CallId call = ticket_;  // this lease may be moved while the call waits
  PermitRequest request;
  request.call = call;
  request.weight = weight;
  request.client = std::move(client);
  Status entered = co_await instance->enter(std::move(request), stop);
  if (!entered) co_return pass_on(entered);
  co_return Permit(instance, call);
}

void Lease::condemn_if_silent(async::Duration silence) const {
  const std::optional<async::TimePoint> last = instance_->last_life();
  if (last && cache_->clock_.now() - *last < silence) return;
  const double seconds = std::chrono::duration<double>(silence).count();
  cache_->condemn(*cache_->entries_[entry_], instance_,
                  Error{ErrorCode::engine_timeout,
                        fmt::format("the engine said nothing to any of its calls for {:.0f} s "
                                    "(silence_timeout) and is replaced",
                                    seconds),
                        Origin::engine});
}

async::awaitable<bool> Lease::settle_death() {
  constexpr auto kExitWait = 200ms;
  const std::shared_ptr<Instance> instance = instance_;
  async::Deadline limit(cache_->clock_, kExitWait, std::stop_token());
  const bool gone = co_await instance->runtime().exited().wait(limit.token());
  if (gone) {
    cache_->note_death(*cache_->entries_[entry_], instance);
    co_return true;
  }
  const bool says_dead = co_await instance->runtime().says_dead(std::stop_token());
  if (says_dead) {
    cache_->condemn(*cache_->entries_[entry_], instance,
                    Error{ErrorCode::engine_failed,
                          "the engine says that it is dead and is replaced", Origin::engine});
  }
  co_return says_dead;
}

}  // namespace werk::runtime
