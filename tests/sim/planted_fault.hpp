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
};

inline Fault planted_fault = Fault::none;

inline bool planted(Fault asked) {
  return asked == Fault::any ? planted_fault != Fault::none : planted_fault == asked;
}

struct NamedFault {
  Fault fault;
  std::string_view name;
};

inline constexpr std::array<NamedFault, 9> kFaults = {{
    {Fault::two_starts_on_one_key, "two starts on one key"},
    {Fault::active_only_when_ready, "a call counts as active only while its runtime is ready"},
    {Fault::victim_with_a_waiter, "a victim that has a waiter"},
    {Fault::waiter_lost_on_failed_start, "a waiter lost on a failed start"},
    {Fault::cancelled_waiter_keeps_pin, "a cancelled waiter that keeps its pin"},
    {Fault::start_after_shutdown, "a start after shutdown"},
    {Fault::capacity_forgets_stopping, "capacity that forgets stopping runtimes"},
    {Fault::double_release, "a double release"},
    {Fault::no_fair_turn, "no fair turn"},
}};

}  // namespace werk::test
