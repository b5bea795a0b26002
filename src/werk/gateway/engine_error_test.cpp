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

}  // namespace
}  // namespace werk::gateway
