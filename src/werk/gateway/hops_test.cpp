#include "werk/gateway/hops.hpp"

#include <gtest/gtest.h>

namespace werk::gateway {
namespace {

http::Headers with(std::initializer_list<std::string> values) {
  http::Headers headers;
  for (const std::string& value : values) headers.add("x-werk-hops", value);
  return headers;
}

ErrorCode refusal(const http::Headers& headers) {
  const Status checked = check_hops(headers, "own");
  EXPECT_FALSE(checked);
  return checked ? ErrorCode::internal : checked.error().code;
}

std::string nodes(std::size_t count) {
  std::string list;
  for (std::size_t node = 0; node < count; ++node) list += "node" + std::to_string(node) + ",";
  return list;
}

TEST(Hops, ARequestWithoutThemBeginsAList) {
  EXPECT_TRUE(check_hops({}, "own"));
  EXPECT_EQ(hops_onward({}, "own"), "own");
}

TEST(Hops, WhatCameIsCarriedOnInOrder) {
  const http::Headers headers = with({"a, b", "c"});
  EXPECT_TRUE(check_hops(headers, "own"));
  EXPECT_EQ(hops_onward(headers, "own"), "a,b,c,own");
}

TEST(Hops, TheOwnIdAnywhereInTheListIsALoop) {
  EXPECT_EQ(refusal(with({"own"})), ErrorCode::loop_detected);
  EXPECT_EQ(refusal(with({"a,own ,b"})), ErrorCode::loop_detected);
  EXPECT_EQ(refusal(with({"a", "own"})), ErrorCode::loop_detected);
  EXPECT_TRUE(check_hops(with({"owner,disown"}), "own"));
}

TEST(Hops, EightNodesAreTheMost) {
  EXPECT_TRUE(check_hops(with({nodes(kHopsMax)}), "own"));
  EXPECT_EQ(refusal(with({nodes(kHopsMax + 1)})), ErrorCode::loop_detected);
}

TEST(Hops, AListThatCannotBeReadIsRefused) {
  EXPECT_EQ(refusal(with({"a b"})), ErrorCode::invalid_request);
  EXPECT_EQ(refusal(with({"a;own"})), ErrorCode::invalid_request);
  EXPECT_EQ(refusal(with({std::string(kHopIdBytesMax + 1, 'a')})), ErrorCode::invalid_request);
  EXPECT_TRUE(check_hops(with({" , a,,", ""}), "own")) << "empty elements say nothing";
}

}  // namespace
}  // namespace werk::gateway
