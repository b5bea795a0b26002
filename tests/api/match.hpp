// Compares what came with what a file expects. Expected text may hold placeholders: <any>, <id>
// (letters, digits, _ and -), <number>, <time>. Expected JSON is compared as values, members in any
// order, none missing and none more. The answer is empty or a difference for people. Pure.
#pragma once

#include <string>
#include <string_view>

namespace werk::test {

bool text_matches(std::string_view expected, std::string_view actual);
std::string text_difference(std::string_view expected, std::string_view actual);
std::string json_difference(std::string_view expected, std::string_view actual);

}  // namespace werk::test
