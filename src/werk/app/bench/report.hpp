// A benchmark's results as JSON (the members that the project's specification names, and more) and
// as a table for people, at most 80 columns wide. docs/benchmarking.md describes both. Pure.
#pragma once

#include <boost/json/object.hpp>
#include <string>

#include "werk/app/bench/record.hpp"

namespace werk::app::bench {

boost::json::object report_of(const Session& session);
std::string table_of(const Session& session);

// "8 callers", "2.5 a second".
std::string name_of(const Level& level);
// "830 ms", "1.24 s"; "-" for none.
std::string time_text(std::optional<double> seconds);
// Three digits that count: "0.0312", "8.42", "112".
std::string number_text(double value);

}  // namespace werk::app::bench
