#include "werk/gateway/engine_error.hpp"

#include <gtest/gtest.h>

namespace werk::gateway {
namespace {

TEST(EngineError, ContextOverflowKeepsItsNumbers) {
  const Error error =
      engine_error_from(400, R"({"error":{"code":400,"message":"request (300 tokens) exceeds",)"
                             R"("type":"exceed_context_size_error",)"
                             R"("n_prompt_tokens":300,"n_ctx":256}})");
  EXPECT_EQ(error.code, ErrorCode::context_length_exceeded);
  EXPECT_EQ(error.origin, Origin::engine);
  ASSERT_TRUE(error.overflow);
  EXPECT_EQ(error.overflow->prompt_tokens, 300u);
  EXPECT_EQ(error.overflow->context_tokens, 256u);
}

TEST(EngineError, IsClassifiedByTheStatus) {
  const auto of = [](unsigned status, std::string_view type = "x") {
    return engine_error_from(status,
                             R"({"error":{"message":"why","type":")" + std::string(type) + "\"}}");
  };
  EXPECT_EQ(of(400, "invalid_request_error").code, ErrorCode::invalid_request);
  EXPECT_EQ(of(400).message, "why");
  EXPECT_EQ(of(422).code, ErrorCode::invalid_request);
  EXPECT_EQ(of(413).code, ErrorCode::payload_too_large);
  EXPECT_EQ(of(404).code, ErrorCode::unsupported);
  EXPECT_EQ(of(501, "not_supported_error").code, ErrorCode::unsupported);
  EXPECT_EQ(of(401).code, ErrorCode::engine_failed);
  EXPECT_EQ(of(500).code, ErrorCode::engine_failed);
  EXPECT_EQ(of(500).message, "the engine failed: why");
  EXPECT_FALSE(of(500).retry_after);
  EXPECT_EQ(of(503).code, ErrorCode::engine_failed);
  EXPECT_TRUE(of(503).retry_after);
}

TEST(EngineError, A404IsAModelARouteOrAFailure) {
  const auto of = [](std::string_view body) { return engine_error_from(404, body); };
  EXPECT_EQ(of(R"({"error":{"message":"m","code":"model_not_found"}})").code,
            ErrorCode::model_not_found);
  EXPECT_EQ(of(R"({"error":{"message":"m","type":"NotFoundError","code":404}})").code,
            ErrorCode::model_not_found);
  EXPECT_EQ(of(R"({"type":"error","error":{"type":"not_found_error","message":"m"}})").code,
            ErrorCode::model_not_found);
  EXPECT_EQ(
      of(R"({"error":{"code":404,"message":"File Not Found","type":"not_found_error"}})").code,
      ErrorCode::unsupported);
  EXPECT_EQ(of(R"({"detail":"Not Found"})").code, ErrorCode::unsupported);
  EXPECT_EQ(of("<html>not here</html>").code, ErrorCode::unsupported);
  EXPECT_EQ(of(R"({"error":"the generation failed"})").code, ErrorCode::engine_failed);
  EXPECT_EQ(of(R"({"error":"it broke"})").message, "the engine failed: it broke");
}

TEST(EngineError, ALoopThatAnotherNodeFoundStaysOne) {
  const Error error =
      engine_error_from(400, R"({"error":{"message":"round","code":"loop_detected"}})");
  EXPECT_EQ(error.code, ErrorCode::loop_detected);
  EXPECT_EQ(error.message, "round");
}

TEST(EngineError, ReadsEveryShapeOfBody) {
  EXPECT_EQ(engine_error_from(400, R"({"error":"text"})").message, "text");
  EXPECT_EQ(engine_error_from(400, R"({"detail":"text"})").message, "text");
  EXPECT_EQ(engine_error_from(422, R"({"detail":[{"msg":"x"}]})").message, R"([{"msg":"x"}])");
  EXPECT_EQ(engine_error_from(400, R"({"code":400,"message":"m","type":"t"})").message, "m");
  EXPECT_EQ(engine_error_from(502, "<html>bad\x01</html>").message,
            "the engine failed: <html>bad?</html>");
  EXPECT_EQ(engine_error_from(500, "").message,
            "the engine failed: the engine answered 500 without a reason");
  EXPECT_EQ(engine_error_from(400, "{\"error\":").message, "{\"error\":");
}

TEST(EngineError, LongTextsAreCutBetweenCharacters) {
  std::string text;
  while (text.size() < 100'000) text += "\xE4\xBD\xA0";
  const Error error = engine_error_from(400, text);
  EXPECT_LE(error.message.size(), 2048u);
  EXPECT_EQ(error.message.size() % 3, 0u);
  EXPECT_EQ(error.message.find("\xEF\xBF\xBD"), std::string::npos);
}

engine::HttpTarget target_of(engine::Ownership ownership, std::string authorization = {}) {
  engine::HttpTarget target;
  target.ownership = ownership;
  target.authorization = std::move(authorization);
  return target;
}

http::Headers header(std::string name, std::string value) {
  http::Headers headers;
  headers.add(std::move(name), std::move(value));
  return headers;
}

TEST(EngineRefusal, ARedirectNamesTheHostItLeadsToAndNothingElse) {
  const engine::HttpTarget target = target_of(engine::Ownership::external);
  const auto told = [&](std::string location) {
    return engine_refusal(302, header("Location", std::move(location)), "moved", target).message;
  };
  const std::string elsewhere =
      "the engine redirects to b.example:8443 (status 302), which is not followed";
  EXPECT_EQ(told("https://b.example:8443/x?token=1"), elsewhere);
  EXPECT_EQ(told("//u:p@b.example:8443"), elsewhere);
  EXPECT_EQ(told("/other"),
            "the engine redirects to another path of its own (status 302), which is not followed");
  EXPECT_EQ(told("/to?next=https://b.example"),
            "the engine redirects to another path of its own (status 302), which is not followed");
}

TEST(EngineRefusal, AFullLineThatIsNotOursGoesOnWithItsRetryAfter) {
  const engine::HttpTarget far = target_of(engine::Ownership::external);
  const http::Headers after = header("Retry-After", "17");
  const Error full = engine_refusal(429, after, "slow down", far);
  EXPECT_EQ(full.code, ErrorCode::queue_full);
  EXPECT_EQ(full.retry_after, std::chrono::seconds(17));
  EXPECT_EQ(full.origin, Origin::engine);
  EXPECT_EQ(engine_refusal(503, after, "", far).code, ErrorCode::capacity);
  EXPECT_EQ(engine_refusal(503, {}, "", far).code, ErrorCode::engine_failed);
  EXPECT_EQ(engine_refusal(429, {}, "", far).code, ErrorCode::queue_full);
  const engine::HttpTarget own = target_of(engine::Ownership::owned);
  EXPECT_EQ(engine_refusal(429, after, "", own).code, ErrorCode::engine_failed);
}

TEST(EngineRefusal, AGatewaysWordThatNobodyAnswersBehindItMeansAwayUnlessItSaysForHowLong) {
  for (const int status : {502, 503, 504}) {
    EXPECT_TRUE(means_away(status, {}));
    EXPECT_FALSE(means_away(status, header("Retry-After", "5")));
  }
  for (const int status : {200, 400, 401, 404, 429, 500}) EXPECT_FALSE(means_away(status, {}));
}

TEST(EngineRefusal, AKeyThatIsSaidBackIsHidden) {
  const engine::HttpTarget target = target_of(engine::Ownership::external, "Bearer sk-12345678");
  const std::string body = std::string(2040, 'x') + "sk-12345678 is wrong";
  EXPECT_EQ(engine_refusal(401, {}, body, target).message.find("sk-1"), std::string::npos);
  std::string text = "bad key sk-12345678, Bearer sk-12345678";
  hide_key(text, target);
  EXPECT_EQ(text, "bad key <key>, Bearer <key>");
}

// vLLM 0.32.0: the numbers stand in the text alone.
TEST(EngineError, APromptThatIsTooLongForVllmIsAnOverflowWithItsNumbers) {
  const Error error = engine_error_from(
      400,
      R"({"error":{"message":"This model's maximum context length is 1024 tokens. However, your )"
      R"X(prompt contains at least 1025 input tokens. (parameter=input_tokens, value=1025)",)X"
      R"("type":"BadRequestError","param":"input_tokens","code":400}})");
  EXPECT_EQ(error.code, ErrorCode::context_length_exceeded);
  ASSERT_TRUE(error.overflow.has_value());
  EXPECT_EQ(error.overflow->prompt_tokens, 1025u);
  EXPECT_EQ(error.overflow->context_tokens, 1024u);
  const Error untold = engine_error_from(
      400, R"({"error":{"message":"too long","param":"input_tokens","code":400}})");
  EXPECT_EQ(untold.code, ErrorCode::context_length_exceeded);
  EXPECT_FALSE(untold.overflow.has_value());
  const Error other = engine_error_from(
      400, R"({"error":{"message":"max_tokens=4000","param":"max_tokens","code":400}})");
  EXPECT_EQ(other.code, ErrorCode::invalid_request);
}

}  // namespace
}  // namespace werk::gateway
