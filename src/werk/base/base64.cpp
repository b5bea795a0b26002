#include "werk/base/base64.hpp"

#include <openssl/evp.h>

#include <algorithm>
#include <limits>

namespace werk {

std::optional<std::string> decode_base64(std::string_view text) {
  constexpr std::size_t kLettersOfGroup = 4;
  constexpr std::size_t kBytesOfGroup = 3;
  const auto is_letter = [](char c) {
    return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '+' ||
           c == '/';
  };
  const std::size_t letters = std::min(text.find('='), text.size());
  const std::size_t padding = text.size() - letters;
  // OpenSSL skips blanks and takes padding of any length.
  if (text.size() % kLettersOfGroup != 0 || padding > 2 ||
      text.size() > std::numeric_limits<int>::max() ||
      !std::ranges::all_of(text.substr(0, letters), is_letter) ||
      !std::ranges::all_of(text.substr(letters), [](char c) { return c == '='; })) {
    return std::nullopt;
  }
  std::string bytes(text.size() / kLettersOfGroup * kBytesOfGroup, '\0');
  const int written = EVP_DecodeBlock(reinterpret_cast<unsigned char*>(bytes.data()),
                                      reinterpret_cast<const unsigned char*>(text.data()),
                                      static_cast<int>(text.size()));
  if (written < 0) return std::nullopt;
  bytes.resize(bytes.size() - padding);
  return bytes;
}

}  // namespace werk
