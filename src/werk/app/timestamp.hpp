// Points in time as the node writes them on its pages. Pure; any thread.
// The format is ISO 8601 in UTC with whole seconds, and nothing else is accepted.
#pragma once

#include <chrono>
#include <optional>
#include <string>

namespace werk::app {

// "2026-11-29T22:44:02Z"; none if it is something else.
std::optional<std::chrono::system_clock::time_point> time_of(const std::string& text);

}  // namespace werk::app
