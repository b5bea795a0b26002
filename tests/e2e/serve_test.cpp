// A node with a fake engine, from the outside: it starts, answers, drains and ends.
#include <gtest/gtest.h>

#include <csignal>

#include "tests/support/engine_control.hpp"
#include "tests/support/http_call.hpp"
#include "tests/support/node_process.hpp"
#include "tests/support/temporary_folder.hpp"

namespace werk::test {
namespace {

class ServeTest : public ::testing::Test {
 protected:
  NodeProcess::Settings settings(std::vector<std::string> arguments = {}) {
    std::vector<std::string> environment = control_.environment();
    environment.push_back("WERK_LLAMA_SERVER=" + EngineControl::program());
    return {home_.path(), std::move(arguments), std::move(environment)};
  }

  TemporaryFolder home_;
  EngineControl control_;
};

TEST_F(ServeTest, AModelIsLoadedOnTheFirstCallAndEverythingEndsWithTheNode) {
  install_tiny_models(home_.path(), {{"a"}});
  NodeProcess node(settings());
  const std::uint16_t port = node.port();
  EXPECT_EQ(HttpCall(port, "GET", "/readyz").status(), 200);
  EXPECT_EQ(control_.count("spawned"), 0u);
  HttpCall call = chat(port, chat_body("a"));
  EXPECT_EQ(call.status(), 200) << call.whole_body();
  EXPECT_EQ(control_.count("spawned"), 1u);
  node.signal(SIGTERM);
  EXPECT_EQ(node.wait_exit(), 0);
  EXPECT_TRUE(control_.none_living_within(std::chrono::seconds(2)));
}

TEST_F(ServeTest, AnUnknownDefaultModelIsRefusedAtOnce) {
  install_tiny_models(home_.path(), {{"smollm2"}});
  NodeProcess node(settings({"--model", "smolm2"}));
  EXPECT_EQ(node.wait_exit(), 1);
  EXPECT_NE(node.log().find("did you mean smollm2?"), std::string::npos) << node.log();
}

}  // namespace
}  // namespace werk::test
