// Which Werk this is. The text is made at build time from the project's version and the commit it
// was built from.
#pragma once

#include <string>

namespace werk::app {

// "0.1.0"
std::string version();
// "werk 0.1.0 (commit 1234567)"
std::string version_text();

}  // namespace werk::app
