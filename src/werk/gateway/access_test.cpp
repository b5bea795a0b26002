#include "werk/gateway/access.hpp"

#include <gtest/gtest.h>

namespace werk::gateway {
namespace {

using Fields = std::vector<http::Header>;

http::Request request(Fields fields, int version = 11) {
  http::Request request;
  request.version = version;
  for (http::Header& field : fields)
    request.headers.add(std::move(field.name), std::move(field.value));
  return request;
}

Access open_node(std::vector<std::string> hosts = {}) {
  return Access({.keys = {}, .host_check = HostCheck::on, .allowed_hosts = std::move(hosts)});
}

Access keyed_node() {
  return Access({.keys = {"alpha", "beta"}, .host_check = HostCheck::off, .allowed_hosts = {}});
}

bool host_served(const Access& access, std::string host) {
  return access.check_host(request({{"Host", std::move(host)}})).has_value();
}

TEST(Access, OnlyLoopbackHostsAreServedWithoutAKey) {
  const Access access = open_node();
  for (const char* host : {"localhost", "LOCALHOST:80", "127.0.0.1", "127.9.9.9:1", "[::1]",
                           "[::1]:11434", "localhost.", " localhost "}) {
    EXPECT_TRUE(host_served(access, host)) << host;
  }
  for (const char* host : {"evil.example", "localhost.evil.example", "127.0.0.1.evil.example",
                           "127.evil", "", ":80", "0.0.0.0", "10.0.0.1", "[::]", "[::1",
                           "[::1].evil", "localhost@evil.example", "evil.example:127.0.0.1"}) {
    EXPECT_FALSE(host_served(access, host)) << host;
  }
}

TEST(Access, ARefusedHostIsForbiddenAndTheWayOutIsTold) {
  const Status refused = open_node().check_host(request({{"Host", "evil.example:80"}}));
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::forbidden);
  EXPECT_EQ(refused.error().origin, Origin::client);
  EXPECT_NE(refused.error().message.find("--allow-host evil.example "), std::string::npos);
}

TEST(Access, AnAllowedHostIsANameWithAnyPort) {
  const Access access = open_node({"node.example"});
  EXPECT_TRUE(host_served(access, "node.example"));
  EXPECT_TRUE(host_served(access, "NODE.example:8080"));
  EXPECT_FALSE(host_served(access, "a.node.example"));
  EXPECT_FALSE(host_served(access, "node.example.evil"));
}

TEST(Access, OnlyAnOldClientMayLeaveTheHostOut) {
  EXPECT_TRUE(open_node().check_host(request({}, 10)));
  EXPECT_FALSE(open_node().check_host(request({}, 11)));
}

TEST(Access, AKeyIsTakenFromEitherHeader) {
  const Access access = keyed_node();
  const std::vector<Fields> known = {{{"Authorization", "Bearer alpha"}},
                                     {{"Authorization", "bearer   beta "}},
                                     {{"X-API-Key", "beta"}},
                                     {{"Authorization", "Basic x"}, {"x-api-key", "alpha"}},
                                     {{"Authorization", "Bearer alpha"}, {"X-API-Key", "wrong"}}};
  for (const Fields& fields : known) EXPECT_TRUE(access.check_key(request(fields)));
  const std::vector<Fields> unknown = {{},
                                       {{"Authorization", "alpha"}},
                                       {{"Authorization", "Bearer"}},
                                       {{"Authorization", "Bearer "}},
                                       {{"Authorization", "Bearer alph"}},
                                       {{"Authorization", "Bearer alphaa"}},
                                       {{"Authorization", "Bearer ALPHA"}},
                                       {{"Authorization", "Basic alpha"}},
                                       {{"X-API-Key", ""}},
                                       {{"X-API-Key", "Bearer alpha"}}};
  for (const Fields& fields : unknown) {
    const Status refused = access.check_key(request(fields));
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code, ErrorCode::unauthorized);
    EXPECT_EQ(refused.error().message.find("alpha"), std::string::npos);
  }
}

TEST(Access, WithoutConfiguredKeysAnyOrNoneIsAccepted) {
  EXPECT_TRUE(open_node().check_key(request({})));
  EXPECT_TRUE(open_node().check_key(request({{"Authorization", "Bearer sk-x"}})));
}

TEST(Access, PagesOfThisMachineAndOfAllowedHostsMayCall) {
  const Access access = open_node({"app.example"});
  for (const char* origin :
       {"http://localhost", "https://localhost:3000", "http://127.0.0.1:8080", "http://[::1]",
        "http://[::1]:5173", "https://app.example", "http://App.Example:81"}) {
    EXPECT_EQ(access.page_origin(request({{"Origin", origin}})), origin);
  }
  for (const char* origin :
       {"", "null", "localhost", "http://", "http://evil.example", "ftp://localhost",
        "http://localhost.evil.example", "http://localhost/", "http://localhost/x",
        "http://evil.example@localhost", "http://localhost:80@evil.example", "http://x.app.example",
        "http://http://localhost", "file://localhost", "http://evil.example/localhost:1",
        "http://localhost:3000 http://evil.example", "http://localhost:evil.example"}) {
    EXPECT_FALSE(access.page_origin(request({{"Origin", origin}}))) << origin;
  }
  EXPECT_FALSE(access.page_origin(request({})));
}

TEST(Access, PagesAreToldApartOnANodeWithKeysToo) {
  EXPECT_TRUE(keyed_node().page_origin(request({{"Origin", "http://localhost"}})));
  EXPECT_FALSE(keyed_node().page_origin(request({{"Origin", "http://evil.example"}})));
}

}  // namespace
}  // namespace werk::gateway
