// Models that come, go and change under a node that runs.
#include <gtest/gtest.h>

#include "tests/e2e/test_node.hpp"

namespace werk::test {
namespace {

void remove_model(const TestNode& node, const std::string& id) {
  const CommandRun run = run_werk({"remove", id}, {"WERK_HOME=" + node.home().string()});
  ASSERT_EQ(run.status, 0) << run.err;
}

TEST(ModelsOfARunningNode, AnIdWhoseModelIsReplacedIsServedByTheNewOneFromTheNextCallOn) {
  TestNode node({});
  EXPECT_EQ(node.chat("a").status(), 200);
  EXPECT_EQ(node.chat("a").status(), 200);
  EXPECT_EQ(node.spawned(), 1u);
  remove_model(node, "a");
  TinyGgufOptions other;
  other.name = "another model of the same id";
  install_tiny_models(node.home(), {{"a", other}});
  EXPECT_EQ(node.chat("a").status(), 200);
  EXPECT_EQ(node.chat("a").status(), 200);
  EXPECT_EQ(node.spawned(), 2u) << "the new file needs an engine of its own, and one is enough";
}

TEST(ModelsOfARunningNode, ARemovedOneIsNotFoundAndOneThatWasAddedIsServed) {
  TestNode node({});
  EXPECT_EQ(node.chat("a").status(), 200);
  EXPECT_EQ(node.chat("b").status(), 404);
  remove_model(node, "a");
  install_tiny_models(node.home(), {{"b"}});
  EXPECT_EQ(node.chat("a").status(), 404);
  EXPECT_EQ(node.chat("b").status(), 200);
}

}  // namespace
}  // namespace werk::test
