// Models that come, go and change under a node that runs.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <set>
#include <thread>

#include "tests/e2e/chat_answer.hpp"
#include "tests/e2e/test_node.hpp"
#include "werk/model/store.hpp"

namespace werk::test {
namespace {

namespace fs = std::filesystem;
namespace json = boost::json;

CommandRun remove_model(const TestNode& node, const std::string& id) {
  return run_werk({"remove", id}, {"WERK_HOME=" + node.home().string()});
}

bool is_installed(const TestNode& node, const std::string& id) {
  return model::Store(node.home()).find(id).has_value();
}

TestModel other_content(const std::string& id) {
  TinyGgufOptions options;
  options.name = "another model of the same id";
  return {id, options};
}

std::set<std::string> keys(const json::object& page) {
  std::set<std::string> keys;
  for (const json::value& runtime : page.at("runtimes").as_array()) {
    keys.emplace(runtime.at("key").as_string());
  }
  return keys;
}

TEST(ModelsOfARunningNode, AnIdWhoseModelIsReplacedIsServedByTheNewOneFromTheNextCallOn) {
  TestNode node({});
  EXPECT_EQ(node.chat("a").status(), 200);
  EXPECT_EQ(node.chat("a").status(), 200);
  EXPECT_EQ(node.spawned(), 1u);
  // As a process does that asked the node before this model was loaded.
  ASSERT_TRUE(model::Store(node.home()).remove("a"));
  install_tiny_models(node.home(), {other_content("a")});
  EXPECT_EQ(node.chat("a").status(), 200);
  EXPECT_EQ(node.chat("a").status(), 200);
  EXPECT_EQ(node.spawned(), 2u) << "the new file needs an engine of its own, and one is enough";
}

TEST(ModelsOfARunningNode, ARemovedOneIsNotFoundAndOneThatWasAddedIsServed) {
  TestNode node({});
  EXPECT_EQ(node.chat("b").status(), 404);
  EXPECT_EQ(remove_model(node, "a").status, 0);
  install_tiny_models(node.home(), {{"b"}});
  EXPECT_EQ(node.chat("a").status(), 404);
  EXPECT_EQ(node.chat("b").status(), 200);
}

TEST(ModelsOfARunningNode, OneThatTheNodeHoldsIsNotRemoved) {
  TestNode node({.models = {{"a"}, {"b"}}, .engine = {{"start", "hold"}}});
  const auto refused = [&](std::string_view how) {
    const CommandRun run = remove_model(node, "a");
    EXPECT_EQ(run.status, 1);
    EXPECT_EQ(run.out, "");
    EXPECT_NE(run.err.find(how), std::string::npos) << run.err;
    EXPECT_NE(run.err.find("werk unload a"), std::string::npos) << run.err;
    EXPECT_TRUE(is_installed(node, "a"));
  };
  HttpCall call = node.chat("a");
  const int engine = node.engines().expect("listening").engine;
  refused("(starting, 1 call)");
  EXPECT_EQ(remove_model(node, "b").status, 0) << "the other one is nobody's";
  node.engines().ready(engine);
  EXPECT_EQ(call.status(), 200);
  call.whole_body();
  node.await_observability(
      [](const json::object& page) { return number_in(page, "calls", "active") == 0; });
  refused("(ready, 0 calls)");
  node.kill_engine(engine);
  EXPECT_EQ(remove_model(node, "a").status, 0);
  EXPECT_FALSE(is_installed(node, "a"));
}

TEST(ModelsOfARunningNode, ANodeThatMayNotBeAskedKeepsItsModels) {
  TestNode node({.environment = {"WERK_API_KEY=secret"}});
  EXPECT_GT(node.port(), 0) << "it serves";
  const CommandRun run = remove_model(node, "a");
  EXPECT_EQ(run.status, 1);
  EXPECT_NE(run.err.find("WERK_API_KEY"), std::string::npos) << run.err;
  EXPECT_TRUE(is_installed(node, "a"));
  const CommandRun with_key =
      run_werk({"remove", "a"}, {"WERK_HOME=" + node.home().string(), "WERK_API_KEY=secret"});
  EXPECT_EQ(with_key.status, 0) << with_key.err;
}

TEST(ModelsOfARunningNode, ALinkedFileThatChangedIsRefusedBeforeAnyEngineStarts) {
  TestNode node({});
  const fs::path file = node.home() / "elsewhere.gguf";
  const std::vector<std::string> environment = {"WERK_HOME=" + node.home().string()};
  const std::vector<std::string> import = {"import", file.string(), "--name", "l", "--link"};
  ASSERT_TRUE(write_tiny_gguf(file));
  ASSERT_EQ(run_werk(import, environment).status, 0);
  ASSERT_TRUE(write_tiny_gguf(file, other_content("l").options));
  HttpCall call = node.chat("l");
  EXPECT_EQ(call.status(), 400);
  EXPECT_NE(call.whole_body().find("model_unusable"), std::string::npos) << call.whole_body();
  EXPECT_NE(call.whole_body().find("werk remove l"), std::string::npos) << call.whole_body();
  EXPECT_EQ(call.whole_body().find(node.home().string()), std::string::npos) << "no path leaves";
  EXPECT_EQ(node.spawned(), 0u);
  // What the message says helps.
  ASSERT_EQ(remove_model(node, "l").status, 0);
  EXPECT_TRUE(fs::exists(file)) << "it belongs to somebody else";
  ASSERT_EQ(run_werk(import, environment).status, 0);
  EXPECT_EQ(node.chat("l").status(), 200);
}

TEST(ModelsOfARunningNode, CallsOnAReplacedModelEndWholeAndItsRuntimeIsTheFirstToGo) {
  TestNode node({.models = {{"a"}, {"b"}},
                 .engine = {{"replies", {{{"gated", true}}}}},
                 .arguments = {"--max-resident", "2"}});
  HttpCall old_call = node.chat("a", R"("stream":true)");
  const EngineEvent generation = node.generation();
  const std::set<std::string> old_key = keys(node.observability());
  ASSERT_EQ(old_key.size(), 1u);
  ASSERT_TRUE(model::Store(node.home()).remove("a"));
  install_tiny_models(node.home(), {other_content("a")});

  HttpCall new_call = node.chat("a");
  const EngineEvent other = node.generation();
  EXPECT_NE(other.engine, generation.engine);
  node.engines().finish(other.engine, other.request());
  EXPECT_EQ(new_call.status(), 200) << new_call.whole_body();
  const std::set<std::string> both = keys(node.observability());
  EXPECT_EQ(both.size(), 2u);
  EXPECT_TRUE(both.contains(*old_key.begin()));

  node.engines().finish(generation.engine, generation.request());
  const ChatAnswer answer = read_stream(old_call.whole_body());
  EXPECT_TRUE(answer.done);
  EXPECT_EQ(answer.content, "tok0 tok1 tok2 tok3 tok4 tok5 tok6 tok7 ");
  // A call on the new one makes the old one the least recently used.
  EXPECT_EQ(node.chat("a").status(), 200);
  HttpCall third = node.chat("b");
  const EngineEvent of_third =
      node.generation([&](const EngineEvent& event) { return event.engine != other.engine; });
  node.engines().finish(of_third.engine, of_third.request());
  EXPECT_EQ(third.status(), 200) << third.whole_body();
  EXPECT_EQ(node.engines().expect("exiting").engine, generation.engine);
  EXPECT_FALSE(keys(node.observability()).contains(*old_key.begin()));
  EXPECT_EQ(node.spawned(), 3u);
}

TEST(ModelsOfARunningNode, ImportsAndRemovalsBesideSixClientsLoseNoCall) {
  TestNode node({.models = {{"a"}, {"b"}}, .arguments = {"--parallel", "3"}});
  std::atomic<bool> changing = true;
  std::jthread changes([&] {
    for (int round = 0; round < 8; ++round) {
      const std::string id = "c" + std::to_string(round);
      install_tiny_models(node.home(), {{id}});
      EXPECT_EQ(node.chat(id).status(), 200) << "it is there at once";
      EXPECT_TRUE(model::Store(node.home()).remove(id));
      EXPECT_EQ(node.chat(id).status(), 404) << "and gone at once";
      EXPECT_EQ(remove_model(node, "a").status, is_installed(node, "a") ? 1 : 0);
    }
    changing = false;
  });
  const std::vector<int> lost = run_callers(6, [&](std::size_t caller) {
    int lost_calls = 0;
    for (int turn = 0; turn < 4 || changing; ++turn) {
      HttpCall call = node.chat(caller % 2 == 0 ? "a" : "b", R"("stream":true)");
      const ChatAnswer answer = read_stream(call.whole_body());
      if (call.status() != 200 || !answer.done || !answer.error.empty()) ++lost_calls;
    }
    return lost_calls;
  });
  EXPECT_EQ(lost, std::vector<int>(6, 0)) << node.process().log();
}

TEST(ModelsOfARunningNode, OneOfTwoImportsOfAnIdIsServed) {
  TestNode node({});
  std::vector<std::string> files;
  for (int i = 0; i < 2; ++i) {
    const fs::path file = node.home() / (std::to_string(i) + ".gguf");
    TinyGgufOptions options;
    options.name = "model " + std::to_string(i);
    ASSERT_TRUE(write_tiny_gguf(file, options));
    files.push_back(file.string());
  }
  for (int round = 0; round < 4; ++round) {
    const std::string id = "twice" + std::to_string(round);
    const std::vector<int> statuses = run_callers(2, [&](std::size_t caller) {
      return run_werk({"import", files[caller], "--name", id},
                      {"WERK_HOME=" + node.home().string()})
          .status;
    });
    EXPECT_EQ(statuses[0] + statuses[1], 1) << "one is told that the id is taken";
    EXPECT_EQ(node.chat(id).status(), 200);
  }
}

}  // namespace
}  // namespace werk::test
