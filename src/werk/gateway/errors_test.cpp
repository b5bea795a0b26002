#include "werk/gateway/errors.hpp"

#include <gtest/gtest.h>

#include <set>

namespace werk::gateway {
namespace {

// Every code, in the order of its declaration; `internal` is the last.
std::vector<ErrorCode> every_code() {
  std::vector<ErrorCode> codes;
  for (int i = 0; i <= static_cast<int>(ErrorCode::internal); ++i)
    codes.push_back(static_cast<ErrorCode>(i));
  return codes;
}

TEST(Errors, EveryCodeHasARowOfItsOwn) {
  std::set<std::string_view> words;
  for (const ErrorCode code : every_code()) {
    const ErrorRow row = row_of(code);
    EXPECT_GE(row.status, 400) << name_of(code);
    EXPECT_LT(row.status, 600) << name_of(code);
    EXPECT_NE(row.status, 529) << name_of(code);
    EXPECT_FALSE(row.openai_type.empty()) << name_of(code);
    EXPECT_FALSE(row.anthropic_type.empty()) << name_of(code);
    EXPECT_TRUE(words.insert(row.openai_code).second) << row.openai_code << " stands twice";
    const bool own_fault = row.status >= 500;
    EXPECT_EQ(row.openai_type == "server_error", own_fault) << name_of(code);
  }
}

TEST(Errors, TheStatusesAreTheSettledOnes) {
  const auto status = [](ErrorCode code) { return row_of(code).status; };
  EXPECT_EQ(status(ErrorCode::invalid_request), 400);
  EXPECT_EQ(status(ErrorCode::context_length_exceeded), 400);
  EXPECT_EQ(status(ErrorCode::model_unusable), 400);
  EXPECT_EQ(status(ErrorCode::unsupported), 400);
  EXPECT_EQ(status(ErrorCode::unauthorized), 401);
  EXPECT_EQ(status(ErrorCode::forbidden), 403);
  EXPECT_EQ(status(ErrorCode::model_not_found), 404);
  EXPECT_EQ(status(ErrorCode::route_not_found), 404);
  EXPECT_EQ(status(ErrorCode::method_not_allowed), 405);
  EXPECT_EQ(status(ErrorCode::payload_too_large), 413);
  EXPECT_EQ(status(ErrorCode::queue_full), 429);
  EXPECT_EQ(status(ErrorCode::capacity), 503);
  EXPECT_EQ(status(ErrorCode::draining), 503);
  EXPECT_EQ(status(ErrorCode::unloaded), 503);
  EXPECT_EQ(status(ErrorCode::start_failed), 503);
  EXPECT_EQ(status(ErrorCode::engine_failed), 502);
  EXPECT_EQ(status(ErrorCode::engine_timeout), 504);
}

TEST(Errors, RetryAfterStandsWhereWaitingHelpsAndIsFrom1To60) {
  for (const ErrorCode code : every_code()) {
    Error error{code, "why"};
    const int status = row_of(code).status;
    const bool helps = status == 429 || status == 503;
    EXPECT_EQ(error_head(error).headers.find("Retry-After").has_value(), helps) << name_of(code);
    if (!helps) continue;
    EXPECT_EQ(error_head(error).headers.find("Retry-After"), "1");
    for (const auto& [seconds, told] : {std::pair(-5, "1"), {0, "1"}, {7, "7"}, {3600, "60"}}) {
      error.retry_after = std::chrono::seconds(seconds);
      EXPECT_EQ(error_head(error).headers.find("Retry-After"), told) << seconds;
    }
  }
}

TEST(Errors, TheEnvelopeIsOpenAisWithTheOriginBesides) {
  Error error{ErrorCode::model_not_found, "no \"x\"\x01\xFF", Origin::client};
  EXPECT_EQ(openai_error_body(error),
            R"({"error":{"message":"no \"x\"?)"
            "\xEF\xBF\xBD"
            R"(","type":"invalid_request_error","code":"model_not_found","param":null,)"
            R"("origin":"client"}})");
  error.param = "model";
  error.message = "no";
  EXPECT_EQ(openai_error_event(error),
            "data: "
            R"({"error":{"message":"no","type":"invalid_request_error",)"
            R"("code":"model_not_found","param":"model","origin":"client"}})"
            "\n\n");
  EXPECT_EQ(error_head(error).headers.find("Content-Type"), "application/json");
}

TEST(Errors, AnEventIsOneLineWhateverTheMessageHolds) {
  const std::string event = openai_error_event({ErrorCode::engine_failed, "a\nb\r\nc"});
  EXPECT_EQ(event.find('\n'), event.size() - 2);
  EXPECT_EQ(event.find('\r'), std::string::npos);
}

TEST(Errors, WhatTheServerSaysByItselfLooksTheSame) {
  EXPECT_EQ(server_error_body(400, "bad"),
            R"({"error":{"message":"bad","type":"invalid_request_error",)"
            R"("code":"invalid_request","param":null,"origin":"client"}})");
  EXPECT_NE(server_error_body(413, "x").find("payload_too_large"), std::string::npos);
  EXPECT_NE(server_error_body(503, "x").find(R"("code":"capacity")"), std::string::npos);
  EXPECT_NE(server_error_body(500, "x").find(R"("origin":"node")"), std::string::npos);
}

}  // namespace
}  // namespace werk::gateway
