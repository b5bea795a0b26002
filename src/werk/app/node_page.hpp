// What stands in the JSON pages of a node, which may be of another version: what is absent, null or
// of another kind counts as not told. Text is as the node sent it, not yet fit for a terminal.
// Pure; any thread. References live as long as the page.
#pragma once

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace werk::app {

// Empty: not told.
std::string text_in(const boost::json::object& page, std::string_view member);
// From 0 on.
std::optional<double> figure_in(const boost::json::object& page, std::string_view member);
std::optional<std::uint64_t> count_in(const boost::json::object& page, std::string_view member);
std::optional<bool> truth_in(const boost::json::object& page, std::string_view member);
const boost::json::object& object_in(const boost::json::object& page, std::string_view member);
const boost::json::array& array_in(const boost::json::object& page, std::string_view member);

}  // namespace werk::app
