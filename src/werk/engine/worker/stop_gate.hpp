// StopGate: finds a request's stop strings in text that comes in pieces. What may be the beginning
// of one is held back until it is clear; the text before a match passes, the match itself and what
// follows never do. One per generation, for all engines that can't stop by themselves; a plain
// value, any thread.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace werk::engine::worker {

class StopGate {
 public:
  // Empty strings are left out.
  explicit StopGate(std::vector<std::string> stops);

  // The next piece; appends to `out` what surely stands before any stop string. Nothing after a
  // match.
  void take(std::string_view piece, std::string& out);
  // The generation has ended: what was held back was no stop string.
  void finish(std::string& out);
  // The one that was met, if one was: of several that begin at one place the longest.
  const std::optional<std::string>& matched() const { return matched_; }

 private:
  std::vector<std::string> stops_;
  std::string held_;
  std::optional<std::string> matched_;
};

}  // namespace werk::engine::worker
