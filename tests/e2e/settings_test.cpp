// A settings file under the real program: what one model has of its own reaches its engine, its
// calls and nobody else's; a faulty file keeps the node from starting.
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>

#include "tests/e2e/test_node.hpp"

namespace werk::test {
namespace {

namespace json = boost::json;

class SettingsFile : public ::testing::Test {
 protected:
  std::string write(const std::string& name, const std::string& text) {
    const std::filesystem::path path = folder_ / name;
    std::ofstream(path) << text;
    return path.string();
  }
  std::vector<std::string> config(const std::string& text) {
    return {"--config", write("werk.toml", text)};
  }

  TemporaryFolder folder_;
};

std::vector<std::string> words_of(const EngineEvent& spawned) {
  std::vector<std::string> words;
  for (const json::value& word : spawned.all.at("argv").as_array())
    words.emplace_back(word.as_string());
  return words;
}

std::string value_of(const std::vector<std::string>& words, std::string_view flag) {
  const auto found = std::ranges::find(words, flag);
  return found == words.end() || found + 1 == words.end() ? "" : *(found + 1);
}

TEST_F(SettingsFile, EachModelRunsWithItsOwnAndTheOthersWithTheNodes) {
  const std::string jinja = write("chat.jinja", "{{ messages }}");
  TestNode node(
      {.models = {{"a"}, {"b"}},
       .arguments = config("parallel = 2\nctx_size = 256\n[models.a]\nparallel = 3\n"
                           "chat_template_file = \"chat.jinja\"\naliases = [\"other-*\"]\n"
                           "[models.a.defaults]\nmin_p = 0.25\n")});
  EXPECT_EQ(node.chat("other-name").status(), 200);
  const auto own = words_of(node.engines().expect("spawned"));
  EXPECT_EQ(value_of(own, "-np"), "3");
  EXPECT_EQ(value_of(own, "-c"), "768");
  EXPECT_EQ(value_of(own, "--chat-template-file"), jinja);
  EXPECT_EQ(node.chat("b").status(), 200);
  const auto nodes = words_of(node.engines().expect("spawned"));
  EXPECT_EQ(value_of(nodes, "-np"), "2");
  EXPECT_EQ(value_of(nodes, "-c"), "512");
  EXPECT_EQ(value_of(nodes, "--chat-template-file"), "");
  EXPECT_NE(node.generation().text("body").find("\"min_p\":0.25"), std::string::npos);
  EXPECT_EQ(node.generation().text("body").find("min_p"), std::string::npos);
}

TEST_F(SettingsFile, OneModelsMissingEngineIsToldToItsCallersAndHurtsNoOther) {
  TestNode node({.models = {{"a"}, {"b"}},
                 .arguments = config("[models.a]\nengine = \"/no/such/llama-server\"\n"
                                     "[models.later]\nparallel = 2\n")});
  HttpCall refused = node.chat("a");
  EXPECT_EQ(refused.status(), 400);
  const std::string body = refused.whole_body();
  EXPECT_NE(body.find("no engine can serve"), std::string::npos) << body;
  EXPECT_EQ(body.find("/no/such"), std::string::npos) << "paths don't leave the node: " << body;
  EXPECT_EQ(node.chat("b").status(), 200);
  node.process().wait_for_line("/no/such/llama-server");
  node.process().wait_for_line("the model \"later\" is not installed");
}

TEST_F(SettingsFile, AModelWithAnEngineOfItsOwnIsServedWhereTheNodeHasNone) {
  install_tiny_models(folder_.path(), {{"a"}, {"b"}});
  const EngineControl engines;
  std::vector<std::string> environment = engines.environment();
  environment.push_back("PATH=" + folder_.path().string());  // nothing to be found there
  write("werk.toml", "[models.a]\nengine = \"" + engines.program() + "\"\n");
  NodeProcess node({folder_.path(), {}, environment});
  EXPECT_EQ(chat(node.port(), chat_body("a")).status(), 200);
  HttpCall refused = chat(node.port(), chat_body("b"));
  EXPECT_EQ(refused.status(), 400);
  const std::string body = refused.whole_body();
  EXPECT_NE(body.find("llama-server"), std::string::npos) << body;
}

TEST_F(SettingsFile, TheDefaultModelsMissingEngineKeepsTheNodeFromStarting) {
  install_tiny_models(folder_.path(), {{"a"}});
  const EngineControl engines;
  std::vector<std::string> environment = engines.environment();
  environment.push_back("WERK_HOME=" + folder_.path().string());
  environment.push_back("WERK_LLAMA_SERVER=" + engines.program());
  write("werk.toml", "port = 0\nmodel = \"a\"\n[models.a]\nengine = \"/no/such/llama-server\"\n");
  const CommandRun run = run_werk({"serve"}, environment);
  EXPECT_EQ(run.status, 1);
  EXPECT_NE(run.err.find("models.\"a\".engine names '/no/such/llama-server'"), std::string::npos)
      << run.err;
}

TEST_F(SettingsFile, APinnedModelIsLoadedAtStart) {
  TestNode node({.models = {{"a"}, {"b"}}, .arguments = config("[models.b]\npin = true\n")});
  node.await_state("b", "ready");
  EXPECT_EQ(node.spawned(), 1u);
}

TEST_F(SettingsFile, AFaultyOneKeepsTheNodeFromStartingAndTellsEverything) {
  const auto words = config("prot = 1\nparallel = 0\n");
  const std::vector<std::string> home = {"WERK_HOME=" + folder_.path().string()};
  const CommandRun serve = run_werk({words[0], words[1], "serve"}, home);
  EXPECT_EQ(serve.status, 1);
  EXPECT_NE(serve.err.find("werk.toml:1: prot is no setting; did you mean port?"),
            std::string::npos)
      << serve.err;
  EXPECT_NE(serve.err.find("werk.toml:2: parallel takes a whole number"), std::string::npos);
  const CommandRun check = run_werk({"config", "check", words[1]}, home);
  EXPECT_EQ(check.status, 1);
  EXPECT_EQ(check.err, serve.err);
  // What needs no more than the home goes on, and says so.
  const CommandRun list = run_werk({"list"}, home);
  EXPECT_EQ(list.status, 0) << list.err;
  EXPECT_NE(list.err.find("`werk config check` shows them"), std::string::npos) << list.err;
}

TEST_F(SettingsFile, ExplainTellsTheRouteTheLineAndTheMemoryWithoutStartingAnything) {
  install_tiny_models(folder_.path(), {{"a"}});
  const EngineControl engines;
  std::vector<std::string> environment = engines.environment();
  environment.push_back("WERK_HOME=" + folder_.path().string());
  environment.push_back("WERK_LLAMA_SERVER=" + engines.program());
  write("werk.toml",
        "[models.a]\nparallel = 2\nargs = \"--hf-token abc\"\n[aliases]\n\"x-*\" = \"a\"\n");
  const CommandRun text = run_werk({"--backend", "llama-cpu", "explain", "x-1"}, environment);
  ASSERT_EQ(text.status, 0) << text.err;
  EXPECT_NE(text.out.find("a is served by llama-cpu"), std::string::npos) << text.out;
  EXPECT_NE(text.out.find("parallel (werk.toml:2)"), std::string::npos) << text.out;
  EXPECT_EQ(text.out.find("abc"), std::string::npos) << text.out;
  EXPECT_EQ(text.out.find(folder_.path().string()), std::string::npos) << text.out;
  const CommandRun page = run_werk({"explain", "a", "--json"}, environment);
  ASSERT_EQ(page.status, 0) << page.err;
  EXPECT_EQ(json::parse(page.out).as_object().at("slots"), 2);
  const CommandRun unknown = run_werk({"explain", "nothing"}, environment);
  EXPECT_EQ(unknown.status, 1);
  EXPECT_NE(unknown.err.find("not installed"), std::string::npos);
  EXPECT_EQ(engines.count("spawned"), 0u);
}

}  // namespace
}  // namespace werk::test
