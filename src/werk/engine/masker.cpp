#include "werk/engine/masker.hpp"

#include <algorithm>

namespace werk::engine {

void Masker::hide(std::string text, std::string shown) {
  if (text.size() < 2) return;
  const auto place = std::find_if(hidden_.begin(), hidden_.end(), [&text](const auto& entry) {
    return entry.first.size() < text.size();
  });
  hidden_.insert(place, {std::move(text), std::move(shown)});
}

std::string Masker::apply(std::string_view text) const {
  std::string out;
  while (!text.empty()) {
    const auto found = std::find_if(hidden_.begin(), hidden_.end(), [text](const auto& entry) {
      return text.starts_with(entry.first);
    });
    if (found == hidden_.end()) {
      out += text.front();
      text.remove_prefix(1);
    } else {
      out += found->second;
      text.remove_prefix(found->first.size());
    }
  }
  return out;
}

}  // namespace werk::engine
