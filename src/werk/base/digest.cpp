#include "werk/base/digest.hpp"

#include <fmt/format.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/rand.h>

#include <array>
#include <vector>

#include "werk/base/assert.hpp"

namespace werk {
namespace {

std::string to_hex(const unsigned char* bytes, std::size_t count) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string text;
  text.reserve(count * 2);
  for (std::size_t i = 0; i < count; ++i) {
    text.push_back(kDigits[bytes[i] >> 4u]);
    text.push_back(kDigits[bytes[i] & 0x0Fu]);
  }
  return text;
}

}  // namespace

void Sha256::Free::operator()(evp_md_ctx_st* context) const { EVP_MD_CTX_free(context); }

Sha256::Sha256() : context_(EVP_MD_CTX_new()) {
  WERK_ASSERT(context_ && EVP_DigestInit_ex(context_.get(), EVP_sha256(), nullptr) == 1);
}
Sha256::~Sha256() = default;
Sha256::Sha256(Sha256&&) noexcept = default;
Sha256& Sha256::operator=(Sha256&&) noexcept = default;

void Sha256::update(std::string_view bytes) {
  WERK_ASSERT(EVP_DigestUpdate(context_.get(), bytes.data(), bytes.size()) == 1);
}

std::string Sha256::finish() {
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest{};
  unsigned int length = 0;
  WERK_ASSERT(EVP_DigestFinal_ex(context_.get(), digest.data(), &length) == 1);
  return to_hex(digest.data(), length);
}

std::string sha256_hex(std::string_view bytes) {
  Sha256 hash;
  hash.update(bytes);
  return hash.finish();
}

bool equals_in_constant_time(std::string_view a, std::string_view b) {
  return a.size() == b.size() && CRYPTO_memcmp(a.data(), b.data(), a.size()) == 0;
}

std::string random_hex(std::size_t bytes) {
  std::vector<unsigned char> buffer(bytes);
  WERK_ASSERT(RAND_bytes(buffer.data(), static_cast<int>(bytes)) == 1);
  return to_hex(buffer.data(), buffer.size());
}

std::string unique_hex() {
  constexpr std::size_t kProcessBytes = 8;
  static const std::string process = random_hex(kProcessBytes);
  static std::uint32_t count = 0;
  return fmt::format("{}{:08x}", process, count++);
}

}  // namespace werk
