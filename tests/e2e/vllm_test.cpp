// A node over vLLM, which is the fake under that name: what each is started with, calls as they
// come, counting, the errors it has of its own, a dead core behind a living front, and that nothing
// of its group outlives the node.
#include <gtest/gtest.h>
#include <signal.h>

#include <algorithm>
#include <boost/json.hpp>
#include <filesystem>
#include <fstream>
#include <thread>

#include "tests/e2e/test_node.hpp"
#include "tests/e2e/vllm_models.hpp"
#include "werk/base/text.hpp"

namespace werk::test {
namespace {

namespace fs = std::filesystem;
namespace json = boost::json;

constexpr std::chrono::seconds kLimit{30};

std::vector<std::string> words_of(const EngineEvent& spawned) {
  std::vector<std::string> words;
  for (const json::value& word : spawned.all.at("argv").as_array())
    words.emplace_back(word.as_string());
  return words;
}

class VllmTest : public ::testing::Test {
 protected:
  VllmTest() { fs::create_symlink(EngineControl::program(), folder_ / "vllm"); }

  TestNode& start(TestNode::Settings settings) {
    settings.environment.push_back("PATH=" + folder_.path().string() + ":/usr/bin:/bin");
    node_ = std::make_unique<TestNode>(std::move(settings));
    for (const char* name : {"m", "n"}) import_folder_model(folder_ / name, name, node_->home());
    return *node_;
  }
  TestNode& start(json::object engine, std::vector<std::string> environment = {}) {
    TestNode::Settings settings;
    settings.models = {};
    settings.engine = std::move(engine);
    settings.environment = std::move(environment);
    settings.arguments = {"--backend", "vllm"};
    return start(std::move(settings));
  }
  // Of werk's own commands on this node's home.
  CommandRun command(std::vector<std::string> words) {
    std::vector<std::string> environment = {"WERK_HOME=" + node_->home().string(),
                                            "PATH=" + folder_.path().string() + ":/usr/bin:/bin"};
    return run_werk(words, environment);
  }
  std::string stream(std::string_view model, std::string_view more) {
    HttpCall call = node_->chat(model, std::string(R"("stream":true,)").append(more));
    return call.whole_body();
  }

  TemporaryFolder folder_;
  std::unique_ptr<TestNode> node_;
};

TEST_F(VllmTest, EachVllmGetsExactlyItsWordsAndEachLlamaServerItsSizes) {
  TestNode::Settings settings;
  TinyGgufOptions roomy;
  roomy.context_tokens = 8192;
  settings.models = {{"a", roomy}};
  settings.engine = {{"n_ctx_train", 32768}};
  settings.arguments = {"--backend", "auto", "--parallel", "4", "--ctx-size", "8192"};
  settings.environment = {"WERK_VLLM_ARGS=--max-num-seqs 8 --gpu-memory-utilization 0.4"};
  TestNode& node = start(std::move(settings));
  for (const char* model : {"a", "m", "n"}) {
    HttpCall call = node.chat(model);
    EXPECT_EQ(call.status(), 200) << call.whole_body();
  }
  std::size_t vllms = 0;
  for (const EngineEvent& spawned : node.engines().all("spawned")) {
    const std::vector<std::string> words = words_of(spawned);
    const std::string line = shell_line(words);
    if (words.front() != "serve") {
      EXPECT_NE(line.find(" -np 4 "), std::string::npos) << line;
      EXPECT_NE(line.find(" -c 32768 "), std::string::npos) << line;
      continue;
    }
    ++vllms;
    ASSERT_GT(words.size(), 6u) << line;
    EXPECT_EQ(words[2], "--uds");
    EXPECT_EQ(words[4], "--served-model-name");
    EXPECT_EQ(shell_line(std::span(words).subspan(6)),
              "--enable-prompt-tokens-details --max-num-seqs 8 --gpu-memory-utilization 0.4");
    const json::object& environment = spawned.all.at("env").as_object();
    const std::string key(environment.at("VLLM_API_KEY").as_string());
    EXPECT_GE(key.size(), 32u);
    EXPECT_EQ(line.find(key), std::string::npos) << "others can read the command line";
    EXPECT_FALSE(environment.contains("WERK_VLLM_ARGS"));
  }
  EXPECT_EQ(vllms, 2u);
}

TEST_F(VllmTest, CallsGoToItAsTheyComeWhateverParallelSays) {
  TestNode& node = start({{"hold_until", 4}});
  const std::vector<int> statuses =
      run_callers(4, [&](std::size_t) { return node.chat("m").status(); });
  EXPECT_EQ(statuses, std::vector<int>(4, 200));
  const json::object runtime = runtime_of(node.observability(), "m");
  EXPECT_EQ(runtime.at("slots").at("total"), nullptr) << "Werk doesn't know";
}

TEST_F(VllmTest, ReasoningUnderItsNewNameAndUsageReachTheClientAsElsewhere) {
  TestNode& node = start({{"reply",
                           {{"reasoning", json::array{"hm"}},
                            {"reasoning_field", "reasoning"},
                            {"tokens", 2},
                            {"cached_tokens", 16},
                            {"prompt_tokens", 20}}}});
  const std::string without = stream("m", R"("max_tokens":2)");
  EXPECT_NE(without.find(R"("reasoning_content":"hm")"), std::string::npos) << without;
  EXPECT_EQ(without.find("\"usage\""), std::string::npos) << without;
  const std::string with = stream("m", R"("stream_options":{"include_usage":true})");
  EXPECT_NE(with.find("\"cached_tokens\":16"), std::string::npos) << with;
  HttpCall message(node.port(), "POST", "/v1/messages",
                   R"({"model":"m","max_tokens":5,"messages":[{"role":"user","content":"Hi"}]})");
  const std::string answer = message.whole_body();
  EXPECT_NE(answer.find(R"("thinking":"hm")"), std::string::npos) << answer;
}

TEST_F(VllmTest, TokensAreCountedByTheEngineItself) {
  TestNode& node = start({{"reply", {{"prompt_tokens", 20000}}}});
  HttpCall count(node.port(), "POST", "/v1/messages/count_tokens",
                 R"({"model":"m","messages":[{"role":"user","content":"Hi"}]})");
  EXPECT_EQ(count.status(), 200);
  EXPECT_EQ(json::parse(count.whole_body()).at("input_tokens"), 20000);
  const EngineEvent asked = node.engines().expect(
      "request", [](const EngineEvent& event) { return event.text("target") == "/tokenize"; });
  EXPECT_EQ(json::parse(asked.text("body")).at("messages").at(0).at("content"), "Hi");
}

TEST_F(VllmTest, APromptThatIsTooLongAndARefusalComeAsTheDialectHasThem) {
  const char* const too_long =
      "This model's maximum context length is 1024 tokens. However, your prompt contains at least "
      "1025 input tokens. (parameter=input_tokens, value=1025)";
  TestNode& node = start({{"reply",
                           {{"status", 400},
                            {"error",
                             {{"message", too_long},
                              {"type", "BadRequestError"},
                              {"param", "input_tokens"},
                              {"code", 400}}}}}});
  HttpCall call = node.chat("m");
  EXPECT_EQ(call.status(), 400);
  EXPECT_EQ(json::parse(call.whole_body()).at("error").at("code"), "context_length_exceeded");
  HttpCall message(node.port(), "POST", "/v1/messages",
                   R"({"model":"m","max_tokens":5,"messages":[{"role":"user","content":"Hi"}]})");
  EXPECT_EQ(message.status(), 400);
  const std::string told = message.whole_body();
  EXPECT_NE(told.find("prompt is too long: 1025 tokens > 1024 maximum"), std::string::npos) << told;
}

// B23, and what 0.32.0 does: an error in the stream, "[DONE]" after it, and a front that lives on.
TEST_F(VllmTest, ADeadCoreIsAnErrorToTheClientAndTheNextCallGetsANewEngine) {
  TestNode& node = start({{"core", true}, {"reply", {{"gated", true}}}});
  HttpCall call = node.chat("m", R"("stream":true)");
  const EngineEvent generation = node.generation();
  node.engines().step(generation.engine, generation.request(), 2);
  const EngineEvent spawned = node.engines().expect_from(generation.engine, "spawned");
  ::kill(static_cast<pid_t>(spawned.number("core")), SIGKILL);
  const std::string body = call.whole_body();
  EXPECT_NE(body.find("\"error\""), std::string::npos) << body;
  EXPECT_EQ(body.find("[DONE]"), std::string::npos) << "an error is no success: " << body;

  HttpCall next = node.chat("m");
  const EngineEvent again = node.generation();
  EXPECT_NE(again.engine, generation.engine);
  node.engines().finish(again.engine, again.request());
  EXPECT_EQ(next.status(), 200) << next.whole_body();
  node.engines().expect_from(generation.engine, "gone");
}

TEST_F(VllmTest, NoMemberOfItsGroupOutlivesAKilledNode) {
  TestNode& node = start({{"core", true}});
  HttpCall call = node.chat("m");
  EXPECT_EQ(call.status(), 200);
  EXPECT_GE(node.engines().living().size(), 2u);
  ::kill(node.process().pid(), SIGKILL);
  EXPECT_TRUE(node.engines().none_living_within(kLimit));
}

TEST_F(VllmTest, NoMemberOfItsGroupOutlivesAStop) {
  TestNode& node = start({{"core", true}});
  HttpCall call = node.chat("m");
  EXPECT_EQ(call.status(), 200);
  const CommandRun stopped = command({"unload", "m"});
  EXPECT_EQ(stopped.status, 0) << stopped.err;
  node.await_no_runtimes();
  const std::vector<pid_t> left = node.engines().living();
  EXPECT_EQ(left, std::vector<pid_t>{node.process().pid()});
}

TEST_F(VllmTest, AStartThatFailsOrTakesTooLongSaysWhyAndLeavesNothing) {
  TestNode& node = start({{"start", "exit"},
                          {"exit_code", 1},
                          {"stderr",
                           "(EngineCore pid=9) ERROR 11-30 14:39:34 [core.py:906] "
                           "ValueError: no room for the cache\n"}},
                         {"WERK_VLLM_HEALTH_TIMEOUT_SECONDS=1"});
  HttpCall call = node.chat("m");
  EXPECT_EQ(call.status(), 503);
  const std::string body = call.whole_body();
  EXPECT_NE(body.find("vLLM ended during its start (exit status 1): ValueError: no room"),
            std::string::npos)
      << body;
  node.engines().set_settings({{"start", "hold"}, {"core", true}});
  HttpCall late = node.chat("n");
  EXPECT_EQ(late.status(), 503);
  const std::string reason = late.whole_body();
  EXPECT_NE(reason.find("was not ready within 1 s (WERK_VLLM_HEALTH_TIMEOUT_SECONDS)"),
            std::string::npos)
      << reason;
  EXPECT_EQ(node.engines().living(), std::vector<pid_t>{node.process().pid()});
}

TEST_F(VllmTest, PersistenceIsAskedForAndTheLogHasTheOutputWithoutSecrets) {
  TestNode::Settings settings;
  settings.models = {{"a"}};
  settings.arguments = {"--persistence"};
  settings.environment = {"WERK_VLLM_LOG=" + (folder_ / "vllm.log").string(),
                          "WERK_VLLM_ARGS=--hf-token hunter22222"};
  TestNode& node = start(std::move(settings));
  EXPECT_EQ(node.chat("m").status(), 200);
  const EngineEvent spawned = node.engines().expect("spawned");
  const std::string line = shell_line(words_of(spawned));
  EXPECT_NE(line.find(" --enable-prefix-caching --hf-token hunter22222"), std::string::npos)
      << line;
  node.engines().send(spawned.engine, {{"do", "print"}, {"text", "a word of hunter22222\n"}});
  node.engines().expect("printed");
  EXPECT_EQ(command({"unload", "m"}).status, 0);
  node.await_no_runtimes();
  std::ifstream log(folder_ / "vllm.log");
  const std::string text{std::istreambuf_iterator<char>(log), {}};
  EXPECT_NE(text.find("a word of ***"), std::string::npos) << text;
  const std::string told = node.process().log();
  EXPECT_NE(told.find("--persistence has no effect on llama-cpu"), std::string::npos) << told;
  EXPECT_EQ(told.find("hunter22222"), std::string::npos);
}

TEST_F(VllmTest, ExplainAndDoctorNameItAndWhoDecidedEachWord) {
  TestNode& node = start(json::object{}, {"WERK_VLLM_ARGS=--max-num-seqs 8"});
  EXPECT_EQ(node.chat("m").status(), 200);
  CommandRun run = command({"explain", "m", "--json"});
  ASSERT_EQ(run.status, 0) << run.err;
  const json::value explained = json::parse(run.out);
  EXPECT_EQ(explained.at("engine"), "vllm");
  EXPECT_EQ(explained.at("slots"), nullptr);
  EXPECT_EQ(explained.at("launch").at(0).at("words").at(0), "--uds");
  run = command({"doctor", "--json"});
  const json::value report = json::parse(run.out);
  const auto& engines = report.at("workers").as_array();
  const bool named = std::ranges::any_of(
      engines, [](const json::value& one) { return one.at("engine") == "vllm"; });
  EXPECT_TRUE(named) << run.out;
}

}  // namespace
}  // namespace werk::test
