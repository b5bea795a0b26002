// What stands on the screen of a terminal after a program wrote so many bytes to it: enough of a
// vt100 for what ncurses sends to TERM=vt100. A pure function of the bytes; any thread.
#pragma once

#include <string>
#include <string_view>

namespace werk::test {

// Its lines without blanks at their end, each ended by a line feed. The screen is large enough for
// every size that a test gives its terminal.
std::string screen_text(std::string_view written);

}  // namespace werk::test
