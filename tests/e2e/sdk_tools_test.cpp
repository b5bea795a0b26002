// The official SDKs against the real node over a fake engine: a conversation with tools, and calls
// that they give up and send again. The SDKs are those that tests/e2e/sdk/prepare installed;
// WERK_TEST_SDKS names their folder, and without it the tests are skipped.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>

#include "tests/e2e/test_node.hpp"

namespace werk::test {
namespace {

namespace json = boost::json;

// What the engine says: two calls with thoughts before them, then, with the results, a sentence.
json::object engine_settings() {
  const std::string_view replies = R"([
    {"reasoning": ["Hm", "."],
     "tool_calls": [{"id": "call_1", "name": "weather",
                     "arguments": ["{\"ci", "ty\":\"Kö", "ln\"}"]},
                    {"id": "call_2", "name": "time", "arguments": []}]},
    {"content": ["It ", "rains."]}])";
  const std::string_view props = R"({"chat_template_caps": {"supports_tools": true}})";
  return {{"replies", json::parse(replies)}, {"props", json::parse(props)}};
}

class SdkToolsTest : public ::testing::Test {
 protected:
  void SetUp() override {
    const char* folder = std::getenv("WERK_TEST_SDKS");
    if (folder == nullptr || !std::filesystem::exists(std::string(folder) + "/ready"))
      GTEST_SKIP() << "the official SDKs are not prepared (tests/e2e/sdk/prepare)";
    sdks_ = folder;
  }

  // Runs the check and looks at what the engine was sent the second time.
  void expect_conversation(const std::string& command) {
    TestNode node({.engine = engine_settings()});
    const std::string url = "http://127.0.0.1:" + std::to_string(node.port());
    const std::string whole = command + " " + url + " a";
    ASSERT_EQ(std::system(whole.c_str()), 0);
    node.generation();
    const auto body = json::parse(node.generation().text("body"));
    const json::array& messages = body.at("messages").as_array();
    ASSERT_EQ(messages.size(), 4u) << json::serialize(body);
    const auto& calls = messages[1].at("tool_calls");
    EXPECT_EQ(calls.at(0).at("function").at("arguments").as_string(), R"({"city":"Köln"})");
    EXPECT_EQ(messages[2].at("tool_call_id"), calls.at(0).at("id"));
    EXPECT_EQ(messages[2].at("content").as_string(), "Rain");
    EXPECT_EQ(messages[3].at("tool_call_id"), calls.at(1).at("id"));
    EXPECT_EQ(messages[3].at("content").as_string(), "Error: no clock");
  }

  // The engine has ended the call that was given up before it is sent the next one.
  void expect_retry(const std::string& command, const std::string& sdk) {
    json::object engine{{"reply", {{"content", json::array{"later"}}}}};
    engine["replies"] = json::array{json::object{{"hold", true}}};
    TestNode node({.engine = std::move(engine), .arguments = {"--parallel", "4"}});
    const std::string url = " http://127.0.0.1:" + std::to_string(node.port());
    ASSERT_EQ(std::system((command + " " + sdk + url + " a").c_str()), 0);
    const EngineEvent given_up = node.generation();
    const EngineEvent closed = node.engines().expect("closed");
    const EngineEvent next = node.generation();
    EXPECT_EQ(closed.request(), given_up.request());
    EXPECT_LT(closed.number("at_us"), next.number("at_us"));
    EXPECT_EQ(next.number("open"), 1u);
  }

  std::string python(const std::string& check) const {
    return sdks_ + "/bin/python " + WERK_SDK_CHECKS + "/" + check + ".py";
  }
  std::string javascript(const std::string& check) const {
    return sdks_ + "/js/node " + sdks_ + "/js/" + check + ".mjs";
  }

  std::string sdks_;
};

TEST_F(SdkToolsTest, CallsAndResultsGoThroughThePythonSdk) {
  expect_conversation(python("anthropic_tools_check"));
}

TEST_F(SdkToolsTest, CallsAndResultsGoThroughTheJavaScriptSdk) {
  expect_conversation(javascript("anthropic_tools_check"));
}

TEST_F(SdkToolsTest, ACallThatAPythonSdkGivesUpHasEndedBeforeTheNextTryIsSent) {
  expect_retry(python("retry_check"), "anthropic");
  expect_retry(python("retry_check"), "openai");
}

TEST_F(SdkToolsTest, ACallThatAJavaScriptSdkGivesUpHasEndedBeforeTheNextTryIsSent) {
  expect_retry(javascript("retry_check"), "anthropic");
  expect_retry(javascript("retry_check"), "openai");
}

}  // namespace
}  // namespace werk::test
