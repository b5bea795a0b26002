#include "werk/gateway/messages_errors.hpp"

#include <gtest/gtest.h>

namespace werk::gateway {
namespace {

TEST(MessagesErrors, HaveTheEnvelopeAndTheTypesOfTheDialect) {
  EXPECT_EQ(messages_error_body({ErrorCode::model_not_found, "no \"x\""}, "req_1"),
            R"({"type":"error","error":{"type":"not_found_error","message":"no \"x\""},)"
            R"("request_id":"req_1"})");
  const auto type_of = [](ErrorCode code) {
    const std::string body = messages_error_body({code, "m"}, "");
    const std::size_t at = body.find(R"("error":{"type":")") + 17;
    return body.substr(at, body.find('"', at) - at);
  };
  EXPECT_EQ(type_of(ErrorCode::invalid_request), "invalid_request_error");
  EXPECT_EQ(type_of(ErrorCode::unauthorized), "authentication_error");
  EXPECT_EQ(type_of(ErrorCode::forbidden), "permission_error");
  EXPECT_EQ(type_of(ErrorCode::payload_too_large), "request_too_large");
  EXPECT_EQ(type_of(ErrorCode::queue_full), "rate_limit_error");
  EXPECT_EQ(type_of(ErrorCode::capacity), "overloaded_error");
  EXPECT_EQ(type_of(ErrorCode::engine_failed), "api_error");
  EXPECT_EQ(type_of(ErrorCode::engine_timeout), "timeout_error");
}

TEST(MessagesErrors, TellAnOverflowInTheWordsThatClientsLookFor) {
  Error error{ErrorCode::context_length_exceeded, "too much"};
  EXPECT_NE(messages_error_body(error, "").find("prompt is too long: too much"), std::string::npos);
  error.overflow = TokenOverflow{5000, 4096};
  EXPECT_EQ(messages_error_body(error, ""),
            R"({"type":"error","error":{"type":"invalid_request_error",)"
            R"("message":"prompt is too long: 5000 tokens > 4096 maximum"}})");
}

TEST(MessagesErrors, AnEventIsOneFrameWhateverTheMessage) {
  EXPECT_EQ(messages_error_event({ErrorCode::internal, "a\nb\xFF\x01"}, "r\n"),
            "event: error\n"
            R"(data: {"type":"error","error":{"type":"api_error","message":"a\nb)"
            "\xEF\xBF\xBD"
            R"(?"},"request_id":"r\n"})"
            "\n\n");
}

}  // namespace
}  // namespace werk::gateway
