// The comparison is what every .exchange file relies on: it must be able to say no.
#include "tests/api/match.hpp"

#include <gtest/gtest.h>

#include "tests/api/exchange_file.hpp"

namespace werk::test {
namespace {

TEST(Match, TextIsEqualOrFilledByPlaceholders) {
  EXPECT_TRUE(text_matches("abc", "abc"));
  EXPECT_FALSE(text_matches("abc", "abcd"));
  EXPECT_FALSE(text_matches("abcd", "abc"));
  EXPECT_TRUE(text_matches("a<any>c", "a--c--c"));
  EXPECT_TRUE(text_matches("a<any>", "a"));
  EXPECT_FALSE(text_matches("a<any>c", "a--"));
  EXPECT_TRUE(text_matches("req_<id>!", "req_0aZ!"));
  EXPECT_FALSE(text_matches("req_<id>!", "req_!"));
  EXPECT_FALSE(text_matches("n=<number>", "n=x"));
}

TEST(Match, JsonIsComparedByValueAndNothingMayBeMissingOrMore) {
  EXPECT_EQ(json_difference(R"({"a":1,"b":[true]})", R"({"b":[true],"a":1})"), "");
  EXPECT_EQ(json_difference(R"({"a":"<any>","b":"x<number>"})", R"({"a":{},"b":"x12"})"), "");
  EXPECT_NE(json_difference(R"({"a":1})", R"({"a":2})"), "");
  EXPECT_NE(json_difference(R"({"a":1})", R"({})"), "");
  EXPECT_NE(json_difference(R"({})", R"({"a":1})"), "");
  EXPECT_NE(json_difference(R"({"a":[1]})", R"({"a":[1,2]})"), "");
  EXPECT_NE(json_difference(R"({"a":"1"})", R"({"a":1})"), "");
  EXPECT_NE(json_difference(R"({"a":"<number>"})", R"({"a":null})"), "");
  EXPECT_NE(json_difference("{}", "no JSON"), "");
}

TEST(Match, BytesThatNoEditorShowsCanBeWritten) {
  EXPECT_EQ(expanded("a<repeat 3 [>b<byte FF>"), "a[[[b\xFF");
  EXPECT_EQ(expanded("<any> stays"), "<any> stays");
}

}  // namespace
}  // namespace werk::test
