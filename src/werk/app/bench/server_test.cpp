#include "werk/app/bench/server.hpp"

#include <gtest/gtest.h>

namespace werk::app::bench {
namespace {

Server at(const std::string& url) {
  const auto server = server_at({url, "k", Way::direct});
  EXPECT_TRUE(server) << url;
  return server.value_or(Server());
}

TEST(BenchServer, AnAddressMayNameThePathOfItsApi) {
  const Server plain = at("http://127.0.0.1:8080");
  EXPECT_EQ(plain.address.host, "127.0.0.1");
  EXPECT_EQ(plain.address.port, 8080);
  EXPECT_EQ(plain.api, "/v1");
  EXPECT_EQ(plain.observability, "/werk/v1/observability");
  EXPECT_TRUE(plain.address.tls_name.empty());
  EXPECT_EQ(at("http://host:1/v1/").api, "/v1");
  EXPECT_EQ(at("http://host/x/v1").api, "/x/v1");
  EXPECT_EQ(at("http://host/x/v1").observability, "/x/werk/v1/observability");
  EXPECT_EQ(at("http://host").address.port, 80);
}

TEST(BenchServer, AnHttpsAddressIsAskedByTlsUnderItsName) {
  const Server server = at("https://api.example/v1");
  EXPECT_EQ(server.address.port, 443);
  EXPECT_EQ(server.address.host, "api.example");
  EXPECT_EQ(server.address.tls_name, "api.example");
}

TEST(BenchServer, AnAddressOfVersionSixStandsInBrackets) {
  EXPECT_EQ(at("http://[::1]:80").address.host, "::1");
  EXPECT_EQ(at("http://[::1]").address.port, 80);
}

TEST(BenchServer, WhatIsNoAddressIsRefused) {
  for (const std::string url :
       {"http://", "http://:80", "http://h:x", "http://h:99999", "http://u:p@h", "ftp://h", "h:80",
        "http://h:80?x", "http://h/v1#x"})
    EXPECT_FALSE(server_at({url, "", Way::direct})) << url;
}

TEST(BenchServer, AKeyIsSentAsTheDialectHasIt) {
  const Server server = at("http://h");
  EXPECT_EQ(headers_for(server, Dialect::openai).find("authorization"), "Bearer k");
  EXPECT_FALSE(headers_for(server, Dialect::openai).find("x-api-key"));
  EXPECT_EQ(headers_for(server, Dialect::anthropic).find("x-api-key"), "k");
  EXPECT_TRUE(headers_for(server, Dialect::anthropic).find("anthropic-version"));
  EXPECT_EQ(headers_for({}, Dialect::anthropic).count("authorization"), 0u);
}

TEST(BenchServer, ANodesPageTellsItsVersion) {
  EXPECT_EQ(version_in({{"node", {{"version", "0.1.0"}}}}), "werk 0.1.0");
  EXPECT_EQ(version_in({}), "");
}

}  // namespace
}  // namespace werk::app::bench
