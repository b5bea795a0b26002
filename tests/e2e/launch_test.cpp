// `werk launch claude` with a client that only shows what it was given and asks the node once.
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cstdlib>
#include <fstream>

#include "tests/support/engine_control.hpp"
#include "tests/support/http_call.hpp"
#include "tests/support/node_process.hpp"
#include "tests/support/temporary_folder.hpp"

namespace werk::test {
namespace {

// The builtins of bash alone: it prints its words and variables, asks for a message, and fails.
constexpr std::string_view kClient = R"(#!/bin/bash
for word in "$@"; do echo "word=$word"; done
export -p
where=${ANTHROPIC_BASE_URL#http://}
exec 3<>"/dev/tcp/${where%:*}/${where##*:}"
body='{"model":"'$ANTHROPIC_MODEL'","max_tokens":9,"messages":[{"role":"user","content":"Hi"}]}'
if [ -n "$SIGNAL_THE_PARENT" ]; then
  trap 'echo "told to end"; exit 9' TERM
  kill -TERM $PPID
  while :; do read -t 1 line <&3; done
fi
end=$'\r\n'
head="POST /v1/messages?beta=true HTTP/1.0${end}Host: 127.0.0.1${end}x-api-key: $ANTHROPIC_API_KEY"
printf '%s' "$head${end}Content-Length: ${#body}$end$end$body" >&3
while IFS= read -r line <&3; do echo "answer: $line"; done
echo "answer: $line"
exit 7
)";

class LaunchTest : public ::testing::Test {
 protected:
  LaunchTest() {
    path_ = std::getenv("PATH");
    std::ofstream(clients_ / "claude") << kClient;
    ::chmod((clients_ / "claude").c_str(), 0700);
    set_path(clients_.path().string() + ":" + path_);
  }
  ~LaunchTest() override { set_path(path_); }

  static void set_path(const std::string& path) { ::setenv("PATH", path.c_str(), 1); }

  void install(const std::string& id, std::uint32_t context_tokens,
               TinyTemplate chat_template = TinyTemplate::with_tools) {
    TinyGgufOptions options;
    options.context_tokens = context_tokens;
    options.chat_template = chat_template;
    install_tiny_models(home_.path(), {{id, options}});
  }

  CommandRun launch(std::vector<std::string> words, std::vector<std::string> variables = {}) {
    words.insert(words.begin(), {"launch", "claude"});
    // Of two equal names the first counts.
    std::vector<std::string> environment = std::move(variables);
    for (std::string& entry : control_.environment()) environment.push_back(std::move(entry));
    environment.push_back("WERK_LLAMA_SERVER=" + EngineControl::program());
    environment.push_back("WERK_HOME=" + home_.path().string());
    return run_werk(words, environment);
  }

  static void expect_has(const std::string& text, std::string_view part) {
    EXPECT_NE(text.find(part), std::string::npos) << "no " << part << " in\n" << text;
  }

  TemporaryFolder home_;
  TemporaryFolder clients_;
  EngineControl control_{{{"n_ctx_train", 65536}}};
  std::string path_;
};

TEST_F(LaunchTest, ANodeIsStartedForTheClientAndEndsWithIt) {
  install("coder", 32768);
  const CommandRun run = launch({"--", "-p", "say hi", "--model", "x"});
  EXPECT_EQ(run.status, 7) << run.out << run.err;
  expect_has(run.out, "word=-p\nword=say hi\nword=--model\nword=x\n");
  for (const std::string_view name :
       {"ANTHROPIC_MODEL", "ANTHROPIC_SMALL_FAST_MODEL", "ANTHROPIC_DEFAULT_OPUS_MODEL",
        "ANTHROPIC_DEFAULT_SONNET_MODEL", "ANTHROPIC_DEFAULT_HAIKU_MODEL",
        "CLAUDE_CODE_SUBAGENT_MODEL"}) {
    expect_has(run.out, std::string(name) + "=\"coder\"");
  }
  expect_has(run.out, "ANTHROPIC_BASE_URL=\"http://127.0.0.1:");
  expect_has(run.out, "ANTHROPIC_API_KEY=\"werk\"");
  expect_has(run.out, "DISABLE_TELEMETRY=\"1\"");
  expect_has(run.out, "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=\"1\"");
  expect_has(run.out, "CLAUDE_CODE_ATTRIBUTION_HEADER=\"0\"");
  expect_has(run.out, "CLAUDE_CODE_MAX_CONTEXT_TOKENS=\"32768\"");
  expect_has(run.out, "CLAUDE_CODE_MAX_OUTPUT_TOKENS=\"8192\"");
  expect_has(run.out, "answer: HTTP/1.1 200");
  expect_has(run.out, "\"type\":\"message\"");
  control_.expect("gone");  // behind all that it has told
  EXPECT_EQ(control_.count("spawned"), 1u);
  EXPECT_TRUE(control_.none_living_within(std::chrono::seconds(5)));
}

TEST_F(LaunchTest, ARunningNodeOfTheHomeIsUsedAndStays) {
  install("coder", 32768);
  std::vector<std::string> environment = control_.environment();
  environment.push_back("WERK_LLAMA_SERVER=" + EngineControl::program());
  environment.push_back("WERK_API_KEY=secret");
  NodeProcess node({home_.path(), {}, environment});
  const std::string port = std::to_string(node.port());
  // What would lead the client elsewhere is taken from it; what its user has chosen stays.
  const CommandRun run =
      launch({"--parallel", "2"}, {"WERK_API_KEY=secret", "ANTHROPIC_AUTH_TOKEN=elsewhere",
                                   "DISABLE_TELEMETRY=0", "CLAUDE_CODE_MAX_OUTPUT_TOKENS=99"});
  EXPECT_EQ(run.status, 7) << run.out << run.err;
  expect_has(run.out, "ANTHROPIC_BASE_URL=\"http://127.0.0.1:" + port + "\"");
  expect_has(run.out, "ANTHROPIC_API_KEY=\"secret\"");
  expect_has(run.out, "DISABLE_TELEMETRY=\"0\"");
  expect_has(run.out, "CLAUDE_CODE_MAX_OUTPUT_TOKENS=\"99\"");
  EXPECT_EQ(run.out.find("ANTHROPIC_AUTH_TOKEN"), std::string::npos);
  expect_has(run.err, "--parallel has no effect on it");
  expect_has(run.out, "answer: HTTP/1.1 200");
  EXPECT_EQ(HttpCall(node.port(), "GET", "/health").status(), 200);
}

TEST_F(LaunchTest, ASignalToEndReachesTheClientAndTheNodeEndsBehindIt) {
  install("coder", 32768);
  const CommandRun run = launch({}, {"SIGNAL_THE_PARENT=yes"});
  EXPECT_EQ(run.status, 9) << run.out << run.err;
  expect_has(run.out, "told to end");
  EXPECT_TRUE(control_.none_living_within(std::chrono::seconds(5)));
}

TEST_F(LaunchTest, ATemplateWithoutToolsIsRefusedUnlessAnyway) {
  install("plain", 32768, TinyTemplate::without_tools);
  const CommandRun run = launch({});
  EXPECT_EQ(run.status, 1);
  EXPECT_EQ(run.out, "");
  expect_has(run.err, "plain can't be used by claude: its chat template has no place for tools");
  EXPECT_EQ(launch({"--anyway"}).status, 7);
}

TEST_F(LaunchTest, AContextSmallerThanTheFirstPromptIsRefusedWithBothNumbersAndTheWayOut) {
  install("short", 8192);
  install("wide", 65536);
  const CommandRun trained = launch({"--model", "short"});
  EXPECT_EQ(trained.status, 1);
  expect_has(trained.err, "about 20000 tokens, and a slot of this model gets a context of 8192");
  expect_has(trained.err, "it was trained with 8192, so --ctx-size can't help");
  const CommandRun set = launch({"--model", "wide", "--ctx-size", "4096"});
  EXPECT_EQ(set.status, 1);
  expect_has(set.err, "gets a context of 4096; give it more with --ctx-size N, up to 65536");
  const CommandRun arguments = launch({"--model", "wide"}, {"WERK_LLAMA_ARGS=-c 8192"});
  EXPECT_EQ(arguments.status, 1);
  expect_has(arguments.err, "gets a context of 8192");
  std::ofstream(home_ / "werk.toml") << "[models.wide]\nctx_size = 2048\n";
  const CommandRun own = launch({"--model", "wide"});
  EXPECT_EQ(own.status, 1);
  expect_has(own.err, "gets a context of 2048");
  EXPECT_EQ(control_.count("spawned"), 0u);
}

TEST_F(LaunchTest, OfSeveralModelsTheFirstThatFitsIsUsedAndNamed) {
  install("a-short", 8192);
  install("wide", 65536);
  const CommandRun run = launch({});
  EXPECT_EQ(run.status, 7) << run.err;
  expect_has(run.err, "2 models are installed, wide is used; --model ID names another");
  expect_has(run.out, "ANTHROPIC_MODEL=\"wide\"");
}

TEST_F(LaunchTest, AnUnknownModelIsRefusedWithNearNames) {
  install("coder", 32768);
  const CommandRun run = launch({"--model", "codr"});
  EXPECT_EQ(run.status, 1);
  expect_has(run.err, "coder");
}

TEST_F(LaunchTest, WithoutAModelItSaysHowToGetOne) {
  const CommandRun run = launch({});
  EXPECT_EQ(run.status, 1);
  expect_has(run.err, "no model is installed");
}

TEST_F(LaunchTest, AMissingClientIsRefusedWithTheLineThatInstallsIt) {
  install("coder", 32768);
  set_path(home_.path().string());
  const CommandRun run = launch({});
  EXPECT_EQ(run.status, 1);
  expect_has(run.err, "`npm install -g @anthropic-ai/claude-code`");
  EXPECT_EQ(control_.count("spawned"), 0u);
}

TEST_F(LaunchTest, ANodeThatCantStartIsToldWithItsOwnWords) {
  install("coder", 32768);
  const CommandRun run = launch({}, {"WERK_LLAMA_SERVER=/nowhere/llama-server"});
  EXPECT_EQ(run.status, 1);
  EXPECT_EQ(run.out, "");
  expect_has(run.err, "the node did not start (exit status 1)");
  expect_has(run.err, "/nowhere/llama-server");
}

TEST_F(LaunchTest, AnUnknownClientIsRefused) {
  const CommandRun run = run_werk({"launch", "emacs"}, {"WERK_HOME=" + home_.path().string()});
  EXPECT_EQ(run.status, 1);
  expect_has(run.err, "launch knows claude, not emacs");
}

}  // namespace
}  // namespace werk::test
