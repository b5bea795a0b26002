// Masker: hides what belongs to this machine (home, store, sockets, keys) in what an engine
// printed, before it leaves the node; and which words of a command are secrets. Plain values, any
// thread.
#pragma once

#include <span>
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

// The words of a command without what follows a flag that names a key, a token, a secret or a
// password: "***" stands there.
std::vector<std::string> without_secrets(std::vector<std::string> words);
// What would be hidden, as far as it is long enough to be told from ordinary text.
std::vector<std::string> secrets_in(std::span<const std::string> words);

}  // namespace werk::engine
