// `werk bench compare A B`: two files of results side by side, level by level, each figure with its
// spread over repeated runs, and a warning for every condition in which the two differ. Pure; plain
// text out.
#pragma once

#include <boost/json/object.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "werk/base/result.hpp"

namespace werk::app::bench {

// The results of a file; invalid_request if it holds none of this version.
Result<boost::json::object> read_report(std::string_view text, const std::string& path);

// What should have been the same and wasn't, a sentence each.
std::vector<std::string> differences(const boost::json::object& a, const boost::json::object& b);

std::string comparison_of(const boost::json::object& a, const boost::json::object& b);

}  // namespace werk::app::bench
