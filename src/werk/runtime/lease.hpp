// Lease and Permit: the right to use a runtime, and the right to run on it now. Both are move-only
// values, and destroying one is the only way to give it back; the destructor posts an event to the
// loop and never acts itself. A lease is held from before the call waits for a permit until the
// response body has ended; a permit is given back no later than its lease.
#pragma once

#include <memory>
#include <stop_token>

#include "werk/runtime/instance.hpp"
#include "werk/runtime/residency.hpp"

namespace werk::runtime {

class RuntimeCache;

class Permit {
 public:
  Permit(std::shared_ptr<Instance> instance, CallId call)
      : instance_(std::move(instance)), call_(call) {}
  Permit(Permit&& other) noexcept = default;
  Permit& operator=(Permit&& other) noexcept;
  ~Permit();

  // The call ended before the engine did: the permit stays taken until the engine was seen to have
  // let go of its slot.
  void quarantine() { after_ = PermitLine::After::quarantine; }
  // The engine is known to be done with the call.
  void free() { after_ = PermitLine::After::free; }

 private:
  void give_back();

  std::shared_ptr<Instance> instance_;
  CallId call_ = 0;
  PermitLine::After after_ = PermitLine::After::free;
};

class Lease {
 public:
  Lease(RuntimeCache& cache, std::shared_ptr<Instance> instance, std::uint32_t entry,
        TicketId ticket)
      : cache_(&cache), instance_(std::move(instance)), entry_(entry), ticket_(ticket) {}
  Lease(Lease&& other) noexcept = default;
  Lease& operator=(Lease&& other) noexcept;
  ~Lease();

  engine::Runtime& runtime() const { return instance_->runtime(); }

  // Waits for the right to run now; errors as Instance::enter.
  async::awaitable<Result<Permit>> permit(std::size_t weight, std::string client,
                                          std::stop_token stop);

  // Stops when the runtime is unloaded under the call; end_cause() says so.
  std::stop_token ended() const { return instance_->ended(); }
  const std::optional<Error>& end_cause() const { return instance_->end_cause(); }
  // What the call cost, for the runtime's sums.
  void add_usage(const Usage& usage) const { instance_->add_usage(usage); }
  // The call got so many pieces of its answer, for the runtime's rate.
  void note_output(std::uint64_t pieces, async::TimePoint at) const {
    instance_->note_output(pieces, at);
  }

  // The engine said something to this call.
  void note_life(async::TimePoint at) const { instance_->note_life(at); }
  // The engine said nothing to this call for `silence`. If it said nothing to any other either, it
  // hangs behind whatever answers for its health: its calls end, and the next one starts another.
  void condemn_if_silent(async::Duration silence) const;

  // After the engine cut a stream or refused a connection: waits up to 200 ms for its exit, then
  // asks what is left of it whether it is dead; and if it is, makes that known before anybody else
  // can be sent to it. True if it is dead.
  async::awaitable<bool> settle_death();

 private:
  void give_back();

  RuntimeCache* cache_;
  std::shared_ptr<Instance> instance_;  // null in a moved-from lease
  std::uint32_t entry_ = 0;
  TicketId ticket_ = 0;
};

}  // namespace werk::runtime
