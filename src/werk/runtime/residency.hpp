// Residency: who may load, who waits, who is evicted, who is refused, for one pool of runtimes. A
// pure decision: no thread, clock, socket or process; events in, effects out. RuntimeCache feeds it
// what happened and carries out what it says.
//
// A *key* is a runtime's identity, a *ticket* one caller from its arrival to the end of its lease.
// What it promises, after each event (asserted): at most one start per key at a time; starting +
// ready + closing + stopping <= capacity; a leased, starting or waited-for runtime is never stopped
// except at shutdown and by unload_now(); each waiter gets exactly one answer (grant, reject, or
// the cancel it asked for itself); nobody waits for a ready key; the victim is the least recently
// used idle one, never a pinned one; nobody waits for a place while pins hold them all; after
// shutdown nothing starts. A waiter at the head for whom turn() was called makes a busy runtime
// *closing*: its calls finish, new ones queue as for an absent key, so constant traffic on one
// model can't starve another. An unload does the same and never opens it again.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace werk::runtime {

using KeyId = std::uint32_t;
using TicketId = std::uint64_t;

enum class RuntimeState : std::uint8_t { absent, starting, ready, closing, stopping };
std::string_view name_of(RuntimeState state);

enum class WhenFull : std::uint8_t { wait, refuse };

// A pinned runtime is never a victim and is not stopped for being idle.
enum class Pinned : std::uint8_t { no, yes };

struct Effect {
  enum class Kind : std::uint8_t {
    start,            // start the key's runtime
    stop,             // stop the key's runtime, or its start
    grant,            // the ticket now holds a lease
    reject_failed,    // the start the ticket waited for has failed
    reject_capacity,  // every place is in use and waiting isn't configured
    reject_pinned,    // pinned runtimes hold every place
    reject_unloaded,  // the start the ticket waited for was ended by unload_now()
    reject_shutdown,
  };
  Kind kind;
  KeyId key = 0;
  TicketId ticket = 0;
  bool operator==(const Effect&) const = default;
};

class Residency {
 public:
  // capacity 0: no limit.
  Residency(std::size_t capacity, WhenFull when_full)
      : capacity_(capacity), when_full_(when_full) {}

  // Events. Each returns the effects in the order in which they are to be carried out.
  using Effects = std::vector<Effect>;
  Effects arrive(TicketId ticket, KeyId key);
  Effects cancel(TicketId ticket);  // a waiting ticket leaves; unknown ones are ignored (the answer
                                    // is on its way)
  Effects release(TicketId ticket);  // a lease has ended
  Effects ready(KeyId key);          // a start succeeded
  Effects failed(KeyId key);         // a start failed
  Effects exited(KeyId key);         // a ready or closing runtime ended by itself
  Effects stopped(KeyId key);        // a stop is complete: nothing of the runtime is left
  Effects turn();                    // the blocked head has waited its fair turn
  // Its calls finish, then it stops, whoever else needs the place; later callers wait for its next
  // start. A start goes on to serve those who wait for it, and is ended once nobody does.
  Effects unload(KeyId key);
  // It stops now: its leases hold nothing any more, those who wait for its start are rejected.
  Effects unload_now(KeyId key);
  // Kept over unloads and deaths.
  Effects pin(KeyId key, Pinned pinned);
  Effects idle(KeyId key);  // its idle time-out has passed; nothing unless it is idle
  Effects
  shutdown();  // from now on nothing starts; idle runtimes are stopped, leased ones when they end
  Effects stop_leased();  // after shutdown(): the drain limit has passed

  RuntimeState state(KeyId key) const;
  std::size_t leases(KeyId key) const;
  std::size_t waiters(KeyId key) const;
  bool is_down() const { return down_; }
  bool is_pinned(KeyId key) const;
  // Up, and neither leased nor waited for: what an idle time-out is about, unless it is pinned.
  bool is_idle(KeyId key) const;
  // The waiter that needs a place which nothing on its way will free: the one whose fair turn runs.
  std::optional<TicketId> blocked_head() const;
  // True while the ticket waits for a place rather than for a load.
  bool waits_for_place(TicketId ticket) const;
  // The whole state in canonical form, equal for situations with equal futures; for exploration.
  std::string fingerprint() const;

 private:
  struct Key {
    RuntimeState state = RuntimeState::absent;
    std::size_t leases = 0;
    std::size_t waiters = 0;
    Pinned pinned = Pinned::no;
    bool unloading = false;  // on its way out, whoever needs the place
  };
  enum class Holding : std::uint8_t {
    waiting,
    leased,
    orphaned
  };  // orphaned: its runtime is gone, its lease not yet
  struct Ticket {
    KeyId key = 0;
    Holding holding = Holding::waiting;
  };

  void settle(Effects& effects);
  void settle_shutdown(Effects& effects);
  void reopen_if_nobody_needs();
  void grant_ready(Effects& effects);
  void close_unloaded(Effects& effects);
  void give_places(Effects& effects);
  void choose_victims(Effects& effects);
  void close_after_turn();
  void stop_closed(Effects& effects);
  void refuse_unserved(Effects& effects);
  void refuse_behind_pins(Effects& effects);

  void leave_line(TicketId ticket);
  void reject_waiters(KeyId key, Effect::Kind kind, Effects& effects);
  void stop_key(KeyId key, Effects& effects);
  void orphan_leases(KeyId key);
  void drop_lru(KeyId key);
  void touch(KeyId key);
  std::vector<KeyId> needed_keys()
      const;  // absent keys with waiters, in the order of their first waiter
  std::size_t count(RuntimeState state) const;
  std::size_t closing_for_others() const;
  std::size_t held_by_pins() const;
  std::size_t occupied() const;
  std::size_t free_places() const;
  void check() const;

  std::size_t capacity_;
  WhenFull when_full_;
  std::map<KeyId, Key> keys_;
  std::map<TicketId, Ticket> tickets_;
  std::vector<TicketId> line_;  // waiting tickets in order of arrival, over all keys
  std::vector<KeyId> lru_;      // ready and closing keys, least recently used first
  bool turned_ = false;
  bool down_ = false;
};

}  // namespace werk::runtime
