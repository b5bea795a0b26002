// The table of `werk ps`, from the node's observability page. Pure.
#pragma once

#include <boost/json/object.hpp>
#include <chrono>
#include <cstddef>
#include <string>

namespace werk::app {

// A line for each runtime below a heading, at most `columns` wide (0: as wide as it gets); then
// what is pinned and not loaded.
std::string ps_table(const boost::json::object& page, std::chrono::system_clock::time_point now,
                     std::size_t columns);

}  // namespace werk::app
