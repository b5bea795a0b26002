#include "werk/base/base64.hpp"

#include <gtest/gtest.h>

namespace werk {
namespace {

TEST(Base64, MeansTheBytesItStandsFor) {
  EXPECT_EQ(decode_base64(""), "");
  EXPECT_EQ(decode_base64("Zg=="), "f");
  EXPECT_EQ(decode_base64("Zm8="), "fo");
  EXPECT_EQ(decode_base64("Zm9v"), "foo");
  EXPECT_EQ(decode_base64("8J+YgA=="), "\xF0\x9F\x98\x80");
}

TEST(Base64, IsRefusedWhereItIsNone) {
  for (const auto* text : {"Zg", "Zg=", "Z===", "Zm9v\n", " Zm9v", "Zm9*", "Zg==Zg==", "_-8="})
    EXPECT_FALSE(decode_base64(text)) << text;
}

}  // namespace
}  // namespace werk
