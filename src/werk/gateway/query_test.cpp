#include "werk/gateway/query.hpp"

#include <gtest/gtest.h>

namespace werk::gateway {
namespace {

TEST(Query, TheFirstValueOfANameCountsDecoded) {
  EXPECT_EQ(query_value("a=1&b=x%20y&a=2", "a"), "1");
  EXPECT_EQ(query_value("a=1&b=x%20y", "b"), "x y");
  EXPECT_EQ(query_value("now", "now"), "");
  EXPECT_EQ(query_value("a==", "a"), "=");
  EXPECT_EQ(query_value("&&&", "a"), std::nullopt);
  EXPECT_EQ(query_value("", "a"), std::nullopt);
  EXPECT_EQ(query_value("ab=1", "a"), std::nullopt);
}

TEST(Query, ASwitchIsOneOfFourWordsOrNone) {
  for (const std::string_view on : {"", "1", "true"}) EXPECT_TRUE(*query_switch("now", on));
  for (const std::string_view off : {"0", "false"}) EXPECT_FALSE(*query_switch("now", off));
  const Result<bool> wrong = query_switch("now", "maybe");
  ASSERT_FALSE(wrong);
  EXPECT_EQ(wrong.error().code, ErrorCode::invalid_request);
  EXPECT_EQ(wrong.error().param, "now");
}

TEST(Query, ANumberIsWholeAndBounded) {
  EXPECT_EQ(query_number("lines", "0", 10), 0u);
  EXPECT_EQ(query_number("lines", "10", 10), 10u);
  for (const std::string_view wrong : {"", "11", "-1", "1x", "1e1", "99999999999999999999"})
    EXPECT_FALSE(query_number("lines", wrong, 10)) << wrong;
}

}  // namespace
}  // namespace werk::gateway
