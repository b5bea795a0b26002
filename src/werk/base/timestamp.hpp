// Points in time as the node writes them: on its pages, in manifests. Pure; any thread. The format
// is ISO 8601 in UTC with whole seconds, and nothing else is accepted.
#pragma once

#include <chrono>
#include <optional>
#include <string>

namespace werk {

// "2026-11-29T22:44:02Z"
std::string timestamp(std::chrono::system_clock::time_point time);
// The reverse; none if it is something else.
std::optional<std::chrono::system_clock::time_point> time_of(const std::string& text);

}  // namespace werk
