#include "werk/engine/masker.hpp"

#include <algorithm>
#include <array>

#include "werk/base/text.hpp"

namespace werk::engine {
namespace {

constexpr std::string_view kShown = "***";

bool names_secret(std::string_view flag) {
  constexpr std::array<std::string_view, 4> kMarks = {"key", "token", "secret", "password"};
  const std::string lower = to_lower(flag);
  return flag.starts_with('-') && std::ranges::any_of(kMarks, [&](std::string_view mark) {
           return lower.find(mark) != std::string::npos;
         });
}

// Calls `found` with each secret in the words and where in its word it begins.
template <class Found>
void each_secret(std::span<const std::string> words, Found found) {
  for (std::size_t i = 0; i < words.size(); ++i) {
    const std::size_t equals = words[i].find('=');
    if (!names_secret(std::string_view(words[i]).substr(0, equals))) continue;
    if (equals != std::string::npos) {
      found(i, equals + 1);
    } else if (i + 1 < words.size() && !words[i + 1].starts_with('-')) {
      found(i + 1, std::size_t{0});
    }
  }
}

}  // namespace

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

std::vector<std::string> without_secrets(std::vector<std::string> words) {
  const std::vector<std::string> all = words;
  each_secret(all, [&](std::size_t word, std::size_t begin) {
    words[word].replace(begin, std::string::npos, kShown);
  });
  return words;
}

std::vector<std::string> secrets_in(std::span<const std::string> words) {
  constexpr std::size_t kLeastBytes = 8;
  std::vector<std::string> secrets;
  each_secret(words, [&](std::size_t word, std::size_t begin) {
    if (words[word].size() >= begin + kLeastBytes) secrets.push_back(words[word].substr(begin));
  });
  return secrets;
}

}  // namespace werk::engine
