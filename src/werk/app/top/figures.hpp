// Figures as they stand in narrow columns: counts, seconds, rates, shares and bytes in at most
// eight characters, and a dash for what isn't known. Pure; any thread.
#pragma once

#include <string>

#include "werk/app/top/state.hpp"

namespace werk::app::top {

std::string count_text(const Count& count);   // "99999", "1234k", "12.3M"
std::string age_text(const Figure& seconds);  // "0.4s", "12s", "3m05s", "1h20m", "3d04h"
std::string rate_text(const Figure& a_second);
std::string share_text(const Figure& share);  // "63%"
std::string bytes_text(const Count& bytes);

}  // namespace werk::app::top
