// A real llama-server that somebody else has started, as a remote: served in both dialects, counted
// where it counts itself, shown without a number that nobody told, and left running at the end.
// Engine and model come from the home that WERK_HOME names; skipped with the reason where they are
// missing.
#include <gtest/gtest.h>

#include <boost/json.hpp>
#include <csignal>
#include <memory>

#include "tests/e2e/prepared.hpp"
#include "tests/support/http_call.hpp"
#include "tests/support/node_process.hpp"
#include "tests/support/piped_process.hpp"
#include "tests/support/temporary_folder.hpp"

namespace werk::test {
namespace {

namespace json = boost::json;

class RealRemoteTest : public ::testing::Test {
 protected:
  void SetUp() override {
    const PreparedEngine llama = prepared_llama_server();
    if (!llama.missing.empty()) GTEST_SKIP() << llama.missing;
    PipedProcess::Settings settings;
    settings.program = llama.program.string();
    settings.words = {"-m",         llama.model.string(),
                      "--alias",    "far-model",
                      "--host",     "127.0.0.1",
                      "--port",     "0",
                      "-c",         "2048",
                      "-np",        "2",
                      "-t",         "1",
                      "-tb",        "1",
                      "--no-ui",    "--offline",
                      "--log-jsonl"};
    settings.environment = {"PATH=/usr/bin:/bin", "HOME=" + home_.path().string()};
    server_ = std::make_unique<PipedProcess>(std::move(settings));
    const std::string_view sign = "listening on http://127.0.0.1:";
    const std::string line = server_->next_line(sign);
    port_ = static_cast<std::uint16_t>(std::stoul(line.substr(line.find(sign) + sign.size())));
  }

  HttpCall ask(std::uint16_t port, std::string_view target, std::string_view body) {
    return HttpCall(port, "POST", target, body);
  }

  TemporaryFolder home_;
  std::unique_ptr<PipedProcess> server_;
  std::uint16_t port_ = 0;
};

TEST_F(RealRemoteTest, ALlamaServerStartedByHandIsServedAndLeftAlone) {
  const std::string url = "http://127.0.0.1:" + std::to_string(port_);
  {
    NodeProcess node({home_.path(), {"--remote", "far=" + url}});
    const std::uint16_t port = node.port();
    HttpCall list(port, "GET", "/v1/models");
    const json::value models = json::parse(list.whole_body());
    EXPECT_EQ(models.at("data").at(0).at("id"), "far-model") << list.whole_body();

    const std::string more = R"("temperature":0,"seed":1,"cache_prompt":false,"max_tokens":12)";
    HttpCall whole = chat(port, chat_body("far-model", more));
    ASSERT_EQ(whole.status(), 200) << whole.whole_body();
    HttpCall direct = chat(port_, chat_body("far-model", more));
    const json::value here = json::parse(whole.whole_body());
    const json::value there = json::parse(direct.whole_body());
    EXPECT_EQ(here.at("choices").at(0).at("message").at("content"),
              there.at("choices").at(0).at("message").at("content"));
    EXPECT_EQ(here.at("usage").at("prompt_tokens"), there.at("usage").at("prompt_tokens"));
    HttpCall stream = chat(port, chat_body("far-model", more + R"(,"stream":true)"));
    EXPECT_NE(stream.whole_body().find("data: [DONE]"), std::string::npos);

    const std::string body = R"({"model":"far-model","max_tokens":12,)"
                             R"("messages":[{"role":"user","content":"Say hello."}]})";
    HttpCall message = ask(port, "/v1/messages", body);
    ASSERT_EQ(message.status(), 200) << message.whole_body();
    HttpCall count = ask(port, "/v1/messages/count_tokens", body);
    ASSERT_EQ(count.status(), 200) << count.whole_body();
    const json::value usage = json::parse(message.whole_body()).at("usage");
    EXPECT_EQ(json::parse(count.whole_body()).at("input_tokens").to_number<int>(),
              usage.at("input_tokens").to_number<int>() +
                  usage.at("cache_read_input_tokens").to_number<int>());

    HttpCall page(port, "GET", "/werk/v1/observability");
    const json::value runtime = json::parse(page.whole_body()).at("runtimes").at(0);
    EXPECT_TRUE(runtime.at("pid").is_null());
    EXPECT_TRUE(runtime.at("slots").at("total").is_null());
    node.signal(SIGTERM);
    EXPECT_EQ(node.wait_exit(), 0);
  }
  HttpCall health(port_, "GET", "/health");
  EXPECT_EQ(health.status(), 200) << "it is not ours to stop";
}

}  // namespace
}  // namespace werk::test
