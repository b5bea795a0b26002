// Residency compiled with the planted faults reachable.
#include "tests/sim/planted_fault.hpp"

#define WERK_FAULT(name) (::werk::test::planted(::werk::test::Fault::name))

#include "werk/runtime/residency.cpp"
