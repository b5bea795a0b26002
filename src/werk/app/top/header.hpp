// The lines at the head of a screen of `werk top`: the node and how it is reached, its slots and
// rates, calls, memory, pools. A part that doesn't fit is left out, whole. Pure; any thread.
#pragma once

#include <cstddef>
#include <vector>

#include "werk/app/top/layout.hpp"

namespace werk::app::top {

// In the order of their weight: a low screen shows the first ones.
std::vector<Line> header(const State& state, const Link& link, std::size_t columns);

}  // namespace werk::app::top
