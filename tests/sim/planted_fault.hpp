// Faults that the simulation can switch on inside Residency, to prove that the explorer would
// notice them. The production build of residency.cpp has none of this: there WERK_FAULT is the
// constant false.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace werk::test {

enum class Fault : std::uint8_t {
  none,
  any,  // the question "is one planted?"
  two_starts_on_one_key,
  active_only_when_ready,
  victim_with_a_waiter,
  waiter_lost_on_failed_start,
  cancelled_waiter_keeps_pin,
  start_after_shutdown,
  capacity_forgets_stopping,
  double_release,
  no_fair_turn,
  unload_cuts_calls,
  unload_forgotten_while_starting,
  unloading_reopens,
  unload_now_keeps_leases,
  unload_now_leaves_waiters,
  pinned_victim,
  pin_lost_on_stop,
  waiting_behind_pins,
  idle_with_a_lease,
  idle_though_pinned,
};

inline Fault planted_fault = Fault::none;

inline bool planted(Fault asked) {
  return asked == Fault::any ? planted_fault != Fault::none : planted_fault == asked;
}

struct NamedFault {
  Fault fault;
  std::string_view name;
};

inline constexpr std::array<NamedFault, 19> kFaults = {{
    {Fault::two_starts_on_one_key, "two starts on one key"},
    {Fault::active_only_when_ready, "a call counts as active only while its runtime is ready"},
    {Fault::victim_with_a_waiter, "a victim that has a waiter"},
    {Fault::waiter_lost_on_failed_start, "a waiter lost on a failed start"},
    {Fault::cancelled_waiter_keeps_pin, "a cancelled waiter that keeps its pin"},
    {Fault::start_after_shutdown, "a start after shutdown"},
    {Fault::capacity_forgets_stopping, "capacity that forgets stopping runtimes"},
    {Fault::double_release, "a double release"},
    {Fault::no_fair_turn, "no fair turn"},
    {Fault::unload_cuts_calls, "an unload that cuts running calls"},
    {Fault::unload_forgotten_while_starting, "an unload forgotten because the runtime starts"},
    {Fault::unloading_reopens, "an unloading runtime that opens again"},
    {Fault::unload_now_keeps_leases, "leases on a runtime that was unloaded at once"},
    {Fault::unload_now_leaves_waiters, "waiters of an ended start that start it again"},
    {Fault::pinned_victim, "a pinned victim"},
    {Fault::pin_lost_on_stop, "a pin lost with its runtime"},
    {Fault::waiting_behind_pins, "a wait for a place that pins hold"},
    {Fault::idle_with_a_lease, "a leased runtime that counts as idle"},
    {Fault::idle_though_pinned, "a pinned runtime stopped for being idle"},
}};

}  // namespace werk::test
