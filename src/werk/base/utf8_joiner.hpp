// Makes valid UTF-8 of text that comes in fragments cut anywhere: an unfinished sequence waits for
// the next fragment, bytes that can't belong to one become U+FFFD. It holds at most three bytes. A
// plain value, one per text; any thread.
#pragma once

#include <string>
#include <string_view>

namespace werk {

class Utf8Joiner {
 public:
  // Appends to `out` what is whole by now.
  void take(std::string_view fragment, std::string& out);
  // No more comes: an unfinished sequence becomes U+FFFD.
  void finish(std::string& out);

 private:
  std::string held_;
};

}  // namespace werk
