#include "werk/gateway/routes.hpp"

#include <gtest/gtest.h>

namespace werk::gateway {
namespace {

std::string refusal(std::string_view path) {
  const auto route = find_route(path);
  if (route) return "found";
  EXPECT_EQ(route.error().code, ErrorCode::route_not_found);
  EXPECT_EQ(route.error().origin, Origin::client);
  return route.error().message;
}

TEST(Routes, OnlyTheStatusRoutesAreOpen) {
  for (const std::string_view open : {"/", "/health", "/livez", "/readyz"}) {
    ASSERT_TRUE(find_route(open)) << open;
    EXPECT_EQ(find_route(open)->key, KeyRule::open) << open;
  }
  for (const std::string_view closed :
       {"/v1/models", "/v1/models/a", "/v1/chat/completions", "/werk/v1/observability"}) {
    ASSERT_TRUE(find_route(closed)) << closed;
    EXPECT_EQ(find_route(closed)->key, KeyRule::needed) << closed;
  }
}

TEST(Routes, AModelsIdIsTheRestOfThePathDecodedOnce) {
  EXPECT_EQ(find_route("/v1/models/a/b:c")->model_id, "a/b:c");
  EXPECT_EQ(find_route("/v1/models/a%2Fb%20c")->model_id, "a/b c");
  EXPECT_EQ(find_route("/v1/models/a%252Fb")->model_id, "a%2Fb");
  EXPECT_EQ(find_route("/v1/models/chat/completions")->model_id, "chat/completions");
}

TEST(Routes, WhatIsDoneToAModelStandsBehindItsId) {
  const auto load = find_route("/werk/v1/models/a/b:c/load");
  ASSERT_TRUE(load);
  EXPECT_EQ(load->id, RouteId::load_model);
  EXPECT_EQ(load->method, "POST");
  EXPECT_EQ(load->key, KeyRule::needed);
  EXPECT_EQ(load->model_id, "a/b:c");
  EXPECT_EQ(find_route("/werk/v1/models/a%2Fb/unload")->model_id, "a/b");
  EXPECT_EQ(find_route("/werk/v1/models/load/load")->model_id, "load");
  EXPECT_EQ(find_route("/werk/v1/models/a/pin")->id, RouteId::pin_model);
  EXPECT_EQ(find_route("/werk/v1/models/a/unpin")->id, RouteId::unpin_model);
  EXPECT_EQ(find_route("/werk/v1/logs/a/b%20c")->model_id, "a/b c");
  EXPECT_EQ(find_route("/werk/v1/logs")->model_id, "");
  EXPECT_FALSE(find_route("/werk/v1/logs/"));
  EXPECT_FALSE(find_route("/werk/v1/models/load"));
  EXPECT_FALSE(find_route("/werk/v1/models//load"));
  EXPECT_FALSE(find_route("/werk/v1/models/a/start"));
}

TEST(Routes, APercentSignThatStartsNoEscapeStays) {
  EXPECT_EQ(percent_decoded("100%"), "100%");
  EXPECT_EQ(percent_decoded("%4"), "%4");
  EXPECT_EQ(percent_decoded("%zz%41"), "%zzA");
  EXPECT_EQ(percent_decoded("a+b"), "a+b");
}

TEST(Routes, PathsAreTakenAsTheyAreAndTheLikelyRouteIsNamed) {
  const std::string chat = "; did you mean /v1/chat/completions?";
  EXPECT_EQ(refusal("/v1/chat/completions/"), "there is no route /v1/chat/completions/" + chat);
  EXPECT_EQ(refusal("//v1/chat/completions"), "there is no route //v1/chat/completions" + chat);
  EXPECT_EQ(refusal("/api/v1/chat/completions"),
            "there is no route /api/v1/chat/completions" + chat);
  EXPECT_EQ(refusal("/v1/chat/completion"), "there is no route /v1/chat/completion" + chat);
  EXPECT_EQ(refusal("/models"), "there is no route /models; did you mean /v1/models?");
  EXPECT_EQ(refusal("/v1/models/"), "there is no route /v1/models/; did you mean /v1/models?");
  EXPECT_EQ(refusal("/V1/Models"), "there is no route /V1/Models; did you mean /v1/models?");
  EXPECT_EQ(refusal("/xyzzyplugh"), "there is no route /xyzzyplugh");
}

TEST(Routes, AnUnknownPathIsShownBoundedAndPrintable) {
  const std::string message = refusal("/" + std::string(5000, 'x') + "\n");
  EXPECT_LT(message.size(), 300u);
  EXPECT_EQ(refusal("/x\x01\xFF"), "there is no route /x?\xEF\xBF\xBD");
  EXPECT_NE(refusal(""), "found");
  EXPECT_NE(refusal("*"), "found");
}

TEST(Routes, AllowNamesHeadWhereGetIs) {
  EXPECT_EQ(allowed_methods(*find_route("/livez")), "GET, HEAD, OPTIONS");
  EXPECT_EQ(allowed_methods(*find_route("/v1/chat/completions")), "POST, OPTIONS");
}

}  // namespace
}  // namespace werk::gateway
