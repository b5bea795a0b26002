// Masker: hides what belongs to this machine (home, store, sockets, keys) in what an engine
// printed, before it leaves the node. A plain value, any thread.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace werk::engine {

class Masker {
 public:
  // Every `text` becomes `shown`. Longer texts win over shorter ones; an empty text or "/" is
  // ignored.
  void hide(std::string text, std::string shown);
  std::string apply(std::string_view text) const;

 private:
  std::vector<std::pair<std::string, std::string>> hidden_;  // longest first
};

}  // namespace werk::engine
