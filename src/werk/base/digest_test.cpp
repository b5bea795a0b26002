#include "werk/base/digest.hpp"

#include <gtest/gtest.h>

#include <set>

namespace werk {
namespace {

TEST(Digest, UniqueIdsAreDifferentAndOfOneLength) {
  std::set<std::string> ids;
  for (int i = 0; i < 1000; ++i) {
    std::string id = unique_hex();
    EXPECT_EQ(id.size(), 24u);
    EXPECT_EQ(id.find_first_not_of("0123456789abcdef"), std::string::npos);
    EXPECT_TRUE(ids.insert(std::move(id)).second);
  }
}

TEST(Digest, SecretsAreComparedWhole) {
  EXPECT_TRUE(equals_in_constant_time("key", "key"));
  EXPECT_FALSE(equals_in_constant_time("key", "kez"));
  EXPECT_FALSE(equals_in_constant_time("key", "keys"));
}

}  // namespace
}  // namespace werk
