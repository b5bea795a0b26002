// SHA-256, incremental and at once, as lower-case hexadecimal text. Backed by OpenSSL.
#pragma once

#include <memory>
#include <string>
#include <string_view>

struct evp_md_ctx_st;

namespace werk {

class Sha256 {
 public:
  Sha256();
  ~Sha256();
  Sha256(Sha256&&) noexcept;
  Sha256& operator=(Sha256&&) noexcept;

  void update(std::string_view bytes);
  // 64 hexadecimal digits. The object is spent afterwards.
  std::string finish();

 private:
  struct Free {
    void operator()(evp_md_ctx_st* context) const;
  };
  std::unique_ptr<evp_md_ctx_st, Free> context_;
};

std::string sha256_hex(std::string_view bytes);

// Equal or not in a time that depends on the lengths only; for keys.
bool equals_in_constant_time(std::string_view a, std::string_view b);

// `bytes` random bytes from the operating system as hexadecimal text; for secrets.
std::string random_hex(std::size_t bytes);

// 24 hexadecimal digits that no other call of this function gave, here or in another process. Not a
// secret: who has seen one can guess the next. Costs no look at the operating system. Loop thread
// only.
std::string unique_hex();

}  // namespace werk
