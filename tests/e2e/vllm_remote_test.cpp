// A node whose vLLM is a server of somebody else's: the fake under that name, started by the test.
#include <gtest/gtest.h>

#include <boost/json.hpp>
#include <filesystem>

#include "tests/e2e/test_node.hpp"
#include "tests/e2e/vllm_models.hpp"
#include "tests/support/piped_process.hpp"

namespace werk::test {
namespace {

namespace fs = std::filesystem;
namespace json = boost::json;

class RemoteVllmTest : public ::testing::Test {
 protected:
  RemoteVllmTest() {
    fs::create_symlink(EngineControl::program(), folder_ / "vllm");
    PipedProcess::Settings settings;
    settings.program = (folder_ / "vllm").string();
    settings.words = {"serve", "/models/theirs",      "--host", "127.0.0.1", "--port",
                      "0",     "--served-model-name", "theirs"};
    settings.environment = control_.environment();
    server_ = std::make_unique<PipedProcess>(std::move(settings));
    const std::string address = control_.expect("listening").text("address");
    port_ = address.substr(address.rfind(':') + 1);
  }

  TestNode& start(std::vector<std::string> arguments, std::vector<std::string> environment) {
    TestNode::Settings settings;
    settings.models = {};
    settings.arguments = std::move(arguments);
    settings.environment = std::move(environment);
    node_ = std::make_unique<TestNode>(std::move(settings));
    import_folder_model(folder_ / "m", "m", node_->home());
    return *node_;
  }
  std::vector<std::string> address() const {
    return {"WERK_VLLM_HOST=127.0.0.1", "WERK_VLLM_PORT=" + port_};
  }

  TemporaryFolder folder_;
  EngineControl control_{{{"reply", {{"tokens", 2}, {"prompt_tokens", 7}}}}};
  std::unique_ptr<PipedProcess> server_;
  std::string port_;
  std::unique_ptr<TestNode> node_;
};

TEST_F(RemoteVllmTest, ServesInstalledModelsAndItsOwnAndIsLeftAloneAtTheEnd) {
  TestNode& node = start({"--backend", "vllm", "--persistence"}, address());
  HttpCall call = node.chat("m");
  ASSERT_EQ(call.status(), 200) << call.whole_body();
  EXPECT_EQ(json::parse(call.whole_body()).at("model"), "m");
  const EngineEvent asked = control_.expect("request", [](const EngineEvent& event) {
    return event.text("target") == "/v1/chat/completions";
  });
  EXPECT_EQ(json::parse(asked.text("body")).at("model"), "theirs");
  EXPECT_EQ(node.chat("theirs").status(), 200) << "by the name that it has there";
  HttpCall count(node.port(), "POST", "/v1/messages/count_tokens",
                 R"({"model":"m","messages":[{"role":"user","content":"Hi"}]})");
  EXPECT_EQ(json::parse(count.whole_body()).at("input_tokens"), 7);
  EXPECT_EQ(node.engines().count("spawned"), 0u);
  node.process().signal(SIGTERM);
  EXPECT_EQ(node.process().wait_exit(), 0);
  EXPECT_NE(node.process().log().find("--persistence: nothing is sent to vllm"), std::string::npos);
  EXPECT_EQ(control_.count("term"), 0u);
  EXPECT_EQ(control_.count("gone"), 0u);
}

TEST_F(RemoteVllmTest, IsPreferredToTransformersWhereItIsNamed) {
  TestNode& node = start({}, address());
  EXPECT_EQ(node.chat("m").status(), 200);
  EXPECT_EQ(runtime_of(node.observability(), "m").at("engine"), "vllm");
}

TEST_F(RemoteVllmTest, HalfAnAddressIsRefusedAtTheStart) {
  TemporaryFolder home;
  for (const auto& [given, missing] : {std::pair("WERK_VLLM_HOST=127.0.0.1", "WERK_VLLM_PORT"),
                                       std::pair("WERK_VLLM_PORT=8000", "WERK_VLLM_HOST"),
                                       std::pair("WERK_VLLM_MODEL=m", "WERK_VLLM_HOST")}) {
    NodeProcess node({home.path(), {"--backend", "vllm"}, {given}});
    EXPECT_EQ(node.wait_exit(), 1);
    EXPECT_NE(node.log().find(missing), std::string::npos) << node.log();
  }
}

}  // namespace
}  // namespace werk::test
