#include "werk/base/utf8_joiner.hpp"

#include <utility>

#include "werk/base/text.hpp"

namespace werk {
namespace {

constexpr std::string_view kReplacement = "\xEF\xBF\xBD";

std::size_t length_by_first(char c) {
  const auto byte = static_cast<unsigned char>(c);
  return byte < 0x80   ? 1
         : byte < 0xC2 ? 0
         : byte < 0xE0 ? 2
         : byte < 0xF0 ? 3
         : byte < 0xF5 ? 4
                       : 0;
}

// Whether more bytes could make one sequence of this beginning. Filled up with one of the two
// outermost continuation bytes it must be valid.
bool is_beginning(std::string_view text) {
  const std::size_t length = length_by_first(text.front());
  if (text.size() >= length) return false;
  for (const char filler : {'\x80', '\xBF'}) {
    std::string whole(text);
    whole.resize(length, filler);
    if (is_valid_utf8(whole)) return true;
  }
  return false;
}

}  // namespace

void Utf8Joiner::take(std::string_view fragment, std::string& out) {
  if (held_.empty() && is_valid_utf8(fragment)) {
    out += fragment;
    return;
  }
  const std::string text = std::exchange(held_, {}).append(fragment);
  std::string_view rest = text;
  while (!rest.empty()) {
    const std::size_t length = length_by_first(rest.front());
    if (length > 0 && rest.size() >= length && is_valid_utf8(rest.substr(0, length))) {
      out += rest.substr(0, length);
      rest.remove_prefix(length);
    } else if (is_beginning(rest)) {
      held_ = rest;
      return;
    } else {
      out += kReplacement;
      rest.remove_prefix(1);
    }
  }
}

void Utf8Joiner::finish(std::string& out) {
  if (!std::exchange(held_, {}).empty()) out += kReplacement;
}

}  // namespace werk
