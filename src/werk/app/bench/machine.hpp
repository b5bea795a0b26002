// What a benchmark says of the machine that it ran on: processor, cores, memory and how busy it
// was. Small reads of the system's own files, at once. Main thread.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "werk/app/bench/record.hpp"

namespace werk::app::bench {

// Without the load after.
Machine this_machine();
// Of the last 1, 5 and 15 minutes; empty where the system doesn't tell.
std::vector<double> load_average();
// The processor's name in the text of /proc/cpuinfo; empty if it isn't there.
std::string processor_in(std::string_view cpuinfo);

}  // namespace werk::app::bench
