// What `werk top --once --json` prints: the data that the screen shows, for programs. Its members
// are documented in docs/top.md and stay; what isn't known is null. Pure; any thread.
#pragma once

#include <string>
#include <string_view>

#include "werk/app/top/state.hpp"

namespace werk::app::top {

std::string json_report(const State& state, std::string_view address);

}  // namespace werk::app::top
