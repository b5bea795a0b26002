// The table of `werk ps`, from the node's observability page. Pure, but for the memory of this
// machine's own processes, which its caller looks up.
#pragma once

#include <boost/json/object.hpp>
#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>

namespace werk::app {

// What a process has in memory; none where it can't be told (it runs elsewhere, or has ended).
using MemoryOf = std::function<std::optional<std::uint64_t>(std::int64_t pid)>;

// A line for each runtime below a heading, at most `columns` wide (0: as wide as it gets); then
// what is pinned and not loaded.
std::string ps_table(const boost::json::object& page, const MemoryOf& memory_of,
                     std::chrono::system_clock::time_point now, std::size_t columns);

}  // namespace werk::app
