#include "werk/engine/remote/remote_url.hpp"

#include <gtest/gtest.h>

namespace werk::engine::remote {
namespace {

TEST(RemoteUrl, ReadsSchemeHostPortAndPrefix) {
  const auto url = parse_remote_url("https://API.example:8443/api/v1/");
  ASSERT_TRUE(url);
  EXPECT_EQ(url->transport, Transport::tls);
  EXPECT_EQ(url->host, "api.example");
  EXPECT_EQ(url->port, 8443);
  EXPECT_EQ(url->prefix, "/api/v1");
  EXPECT_EQ(url->text(), "https://api.example:8443/api/v1");
  EXPECT_EQ(url->beside("/werk"), "/api/werk");
}

TEST(RemoteUrl, TheSchemesPortAndTheUsualPrefixNeedNotBeSaid) {
  const auto plain = parse_remote_url("http://10.0.0.5");
  ASSERT_TRUE(plain);
  EXPECT_EQ(plain->port, 80);
  EXPECT_EQ(plain->prefix, "/v1");
  EXPECT_EQ(plain->text(), "http://10.0.0.5/v1");
  EXPECT_EQ(plain->place(), "10.0.0.5:80");
  EXPECT_EQ(parse_remote_url("https://a.example")->port, 443);
}

TEST(RemoteUrl, AnIpv6AddressStandsInBrackets) {
  const auto url = parse_remote_url("http://[::1]:8000/v1");
  ASSERT_TRUE(url);
  EXPECT_EQ(url->host, "::1");
  EXPECT_EQ(url->place(), "[::1]:8000");
  EXPECT_EQ(url->text(), "http://[::1]:8000/v1");
}

TEST(RemoteUrl, WhatIsNoAddressOfAnApiIsRefusedWithTheReason) {
  for (const std::string_view text :
       {"", "10.0.0.5:8000", "ftp://a", "http://", "http://:80", "http://a:0", "http://a:70000",
        "http://a:x", "http://[::1", "http://[::1]8000", "http://a b", "http://a/v1?x=1",
        "http://a/#f", "http://a/v1/chat/completions", "http://a/v1/models"}) {
    const auto url = parse_remote_url(text);
    ASSERT_FALSE(url) << text;
    EXPECT_TRUE(url.error().message.starts_with("takes a URL")) << url.error().message;
  }
}

TEST(RemoteUrl, AKeyInTheAddressIsRefusedWithoutRepeatingIt) {
  const auto url = parse_remote_url("https://user:topsecret@a.example/v1");
  ASSERT_FALSE(url);
  EXPECT_EQ(url.error().message.find("topsecret"), std::string::npos);
  EXPECT_NE(url.error().message.find("key_env"), std::string::npos);
}

}  // namespace
}  // namespace werk::engine::remote
