#include "werk/engine/llama_server/llama_server.hpp"

#include <gtest/gtest.h>

#include "werk/base/text.hpp"
#include "werk/engine/llama_server/llama_server_fixture.hpp"

namespace werk::engine::llama_server {
namespace {

namespace json = boost::json;

class LlamaServer : public LlamaServerFixture {};

std::vector<std::string> words_of(const json::object& event) {
  std::vector<std::string> words;
  for (const json::value& word : event.at("argv").as_array()) words.emplace_back(word.as_string());
  return words;
}

TEST_F(LlamaServer, IsStartedWithExactlyThePlannedLineAndAScrubbedEnvironment) {
  for (const char* entry : {"LLAMA_ARG_CTX_SIZE=1", "LLAMA_API_KEY=old", "HF_TOKEN=secret",
                            "WERK_API_KEY=secret", "WERK_LLAMA_ARGS=x"}) {
    settings_.environment.emplace_back(entry);
  }
  settings_.launch.options.parallel = 4;
  settings_.launch.options.ctx_size = 2048;
  settings_.launch.options.extra_arguments = {"--seed", "7"};
  bring_up();
  const test::EngineEvent spawned = expect("spawned");
  std::vector<std::string> words = words_of(spawned.all);
  if (!words.empty() && !words.front().starts_with("--")) words.erase(words.begin());
  ASSERT_GE(words.size(), 2u);
  EXPECT_EQ(words[0], "--host");
  EXPECT_EQ(words[1].find('/'), 0u);
  EXPECT_EQ(shell_line(std::span(words).subspan(2)), shell_line(plan().arguments));
  EXPECT_NE(shell_line(words).find(" -np 4 -no-kvu -c 8192 -b 512 -t 1 --threads-http 12 "),
            std::string::npos);

  const json::object& environment = spawned.all.at("env").as_object();
  EXPECT_EQ(environment.at("HF_HUB_OFFLINE").as_string(), "1");
  const std::string key(environment.at("LLAMA_API_KEY").as_string());
  EXPECT_GE(key.size(), 32u);
  for (const char* name : {"LLAMA_ARG_CTX_SIZE", "HF_TOKEN", "WERK_API_KEY", "WERK_LLAMA_ARGS"}) {
    EXPECT_FALSE(environment.contains(name)) << name;
  }

  const RuntimeFacts& facts = runtime_->facts();
  EXPECT_EQ(facts.slots, 4u);
  EXPECT_EQ(facts.context_tokens_per_slot, 2048u);
  EXPECT_EQ(facts.engine_version, "0.5.0");
  EXPECT_EQ(facts.pid, static_cast<int>(spawned.number("pid")));
  const auto target = runtime_->passthrough(Dialect::openai_chat);
  ASSERT_TRUE(target.has_value());
  EXPECT_EQ(target->unix_path, words[1]);
  EXPECT_EQ(target->path, "/v1/chat/completions");
  EXPECT_EQ(target->authorization, "Bearer " + key);
  EXPECT_EQ(target->model_name, plan().key.alias());
}

TEST_F(LlamaServer, AnExitDuringTheStartIsToldWithItsReasonAndLeavesNothing) {
  control_.set_settings({{"start", "hold"}});
  begin();
  const test::EngineEvent spawned = expect("spawned");
  expect("listening");
  EXPECT_FALSE(ended());
  const std::string key(spawned.all.at("env").as_object().at("LLAMA_API_KEY").as_string());
  const std::string model = (model_folder_ / "files/small.gguf").string();
  control_.exit(spawned.engine, 3,
                "0.00.1 E no luck with " + model + " and " + key + " in " + home_.path().string() +
                    "/cache\n");
  finish();
  ASSERT_EQ(runtime_, nullptr);
  EXPECT_EQ(error_.code, ErrorCode::start_failed);
  EXPECT_EQ(error_.origin, Origin::engine);
  EXPECT_NE(error_.message.find("exit status 3"), std::string::npos) << error_.message;
  EXPECT_NE(error_.message.find("no luck with <model> and <key> in <home>/cache"),
            std::string::npos)
      << error_.message;
  EXPECT_EQ(error_.message.find(home_.path().string()), std::string::npos);
  EXPECT_EQ(files_in_socket_folder(), 0u);
}

TEST_F(LlamaServer, AnUnknownArchitectureIsTheModelsFaultAndNamesTheWayOut) {
  control_.set_settings({{"start", "exit"},
                         {"stderr",
                          "0.00.02 E llama_model_load: error loading model: unknown "
                          "model architecture: 'zlama'\n"}});
  fail_to_start();
  EXPECT_EQ(error_.code, ErrorCode::model_unusable);
  EXPECT_NE(error_.message.find("0.5.0"), std::string::npos) << error_.message;
  EXPECT_NE(error_.message.find("WERK_LLAMA_SERVER"), std::string::npos);
}

TEST_F(LlamaServer, AStopEndsAStartThatNeverGetsReady) {
  control_.set_settings({{"start", "hold"}, {"ignore_term", true}});
  begin();
  expect("listening");
  stop_.request_stop();
  finish();
  EXPECT_EQ(error_.code, ErrorCode::cancelled);
  EXPECT_EQ(children_->alive(), 0u);
  EXPECT_EQ(files_in_socket_folder(), 0u);
}

TEST_F(LlamaServer, AStartThatWasStoppedBeforeItBeganSpawnsNothing) {
  stop_.request_stop();
  fail_to_start();
  EXPECT_EQ(error_.code, ErrorCode::cancelled);
  EXPECT_EQ(control_.count("spawned"), 0u);
}

TEST_F(LlamaServer, AnEngineThatServesAnotherModelIsEnded) {
  control_.set_settings({{"alias", "somebody-else"}});
  fail_to_start();
  EXPECT_EQ(error_.code, ErrorCode::start_failed);
  EXPECT_NE(error_.message.find("another model"), std::string::npos) << error_.message;
  EXPECT_EQ(children_->alive(), 0u);
}

TEST_F(LlamaServer, FewerSlotsThanAskedForAreRefused) {
  control_.set_settings({{"total_slots", 2}});
  settings_.launch.options.parallel = 4;
  fail_to_start();
  EXPECT_EQ(error_.code, ErrorCode::start_failed);
  EXPECT_NE(error_.message.find("2 slots where 4"), std::string::npos) << error_.message;
}

TEST_F(LlamaServer, ASmallerContextThanAskedForIsRefused) {
  control_.set_settings({{"n_ctx", 1024}});
  settings_.launch.options.ctx_size = 2048;
  fail_to_start();
  EXPECT_NE(error_.message.find("1024"), std::string::npos) << error_.message;
  EXPECT_NE(error_.message.find("2048"), std::string::npos) << error_.message;
}

TEST_F(LlamaServer, AContextRoundedUpIsFine) {
  settings_.launch.options.ctx_size = 1000;
  settings_.launch.options.parallel = 2;
  bring_up();
  EXPECT_EQ(runtime_->facts().context_tokens_per_slot, 1024u);
}

TEST_F(LlamaServer, TheUsersOwnSizesWinAndTheRealNumbersAreTaken) {
  settings_.launch.options.parallel = 4;
  settings_.launch.options.ctx_size = 2048;
  settings_.launch.options.extra_arguments = {"-np", "2", "-c", "1024"};
  bring_up();
  EXPECT_EQ(runtime_->facts().slots, 2u);
  EXPECT_EQ(runtime_->facts().context_tokens_per_slot, 512u);
}

TEST_F(LlamaServer, MissingFilesAreRefusedBeforeAnythingRuns) {
  std::filesystem::remove(model_folder_ / "files/small.gguf");
  fail_to_start();
  EXPECT_EQ(error_.code, ErrorCode::model_unusable);
  EXPECT_EQ(control_.count("spawned"), 0u);
}

TEST_F(LlamaServer, AnExecutableWithoutParallelIsRefusedByName) {
  control_.set_settings({{"help_without", {"-np", "--parallel"}}});
  settings_.launch.options.parallel = 2;
  fail_to_start();
  EXPECT_NE(error_.message.find("--parallel"), std::string::npos) << error_.message;
  EXPECT_EQ(control_.count("spawned"), 0u);
}

TEST_F(LlamaServer, AnExecutableThatIsMissingFailsTheStartWithoutItsPath) {
  finding_.named.any_mode = home_.path().string() + "/nothing";
  fail_to_start();
  EXPECT_EQ(error_.code, ErrorCode::start_failed);
  EXPECT_NE(error_.message.find("WERK_LLAMA_SERVER"), std::string::npos) << error_.message;
  EXPECT_EQ(error_.message.find(home_.path().string()), std::string::npos) << error_.message;
}

TEST_F(LlamaServer, NothingStartsOnceShutdownHasBegun) {
  bring_up();  // the executable is known from here on
  stop_runtime(std::chrono::seconds(10));
  runtime_.reset();
  children_->begin_shutdown();
  fail_to_start();
  EXPECT_EQ(error_.code, ErrorCode::draining) << error_.message;
  EXPECT_EQ(control_.count("spawned"), 1u);
}

TEST_F(LlamaServer, OldExecutablesGetOnlyWhatTheyKnow) {
  control_.set_settings({{"help_without", {"--cache-ram", "--threads-http", "-fit", "--offline"}}});
  bring_up();
  const std::string line = shell_line(words_of(expect("spawned").all));
  EXPECT_EQ(line.find("--cache-ram"), std::string::npos) << line;
  EXPECT_NE(line.find("--metrics"), std::string::npos) << line;
}

TEST_F(LlamaServer, ThePropsOfTheChatTemplateReachTheFacts) {
  const json::object props{{"chat_template_caps", {{"supports_tools", false}}},
                           {"modalities", {{"vision", true}}}};
  control_.set_settings({{"props", props}});
  bring_up();
  EXPECT_FALSE(runtime_->facts().supports_tools);
  EXPECT_TRUE(runtime_->facts().supports_images);
}

class Caller {
 public:
  explicit Caller(async::Executor executor, async::Clock& clock)
      : client_(executor, clock, http::ClientProfile{}) {}

  async::awaitable<void> ask(HttpTarget target, std::stop_token stop) {
    http::Address address;
    address.unix_path = target.unix_path;
    http::ClientRequest request;
    request.method = "POST";
    request.target = target.path;
    request.headers.add("Authorization", target.authorization);
    request.body = R"({"messages":[{"role":"user","content":"x"}],"stream":true})";
    auto answer = co_await client_.fetch(address, request, 1 << 20, stop);
    status = answer ? answer->status : 0;
  }

  int status = -1;

 private:
  http::Client client_;
};

TEST_F(LlamaServer, BusySlotsAreThoseThatWorkNow) {
  settings_.launch.options.parallel = 2;
  control_.set_settings({{"reply", {{"hold", true}}}});
  bring_up();
  std::size_t busy = 99;
  const auto count = [](Runtime& runtime, std::size_t& out) -> async::awaitable<void> {
    auto slots = co_await runtime.busy_slots(std::stop_token());
    out = slots ? *slots : 99;
  };
  run(count(*runtime_, busy));
  EXPECT_EQ(busy, 0u);
  Caller caller(executor(), clock_);
  start(caller.ask(*runtime_->passthrough(Dialect::openai_chat), std::stop_token()));
  // Status requests are told as events too.
  std::optional<test::EngineEvent> request;
  run_until([&] {
    request = control_.take("request", [](const test::EngineEvent& event) {
      return event.text("target") == "/v1/chat/completions";
    });
    return request.has_value();
  });
  run(count(*runtime_, busy));
  EXPECT_EQ(busy, 1u);
  control_.release(request->engine, request->request());
  run_until([&caller] { return caller.status >= 0; });
  EXPECT_EQ(caller.status, 200);
}

TEST_F(LlamaServer, TheDeathOfAReadyEngineIsToldWithItsMaskedEnd) {
  bring_up();
  const test::EngineEvent ready = expect("ready");
  control_.exit(ready.engine, 9, "0.00.1 E lost " + (model_folder_ / "files/small.gguf").string());
  run(runtime_->exited().wait());
  EXPECT_NE(runtime_->exit_reason().find("exit status 9"), std::string::npos);
  EXPECT_NE(runtime_->exit_reason().find("lost <model>"), std::string::npos)
      << runtime_->exit_reason();
  runtime_.reset();
  EXPECT_EQ(files_in_socket_folder(), 0u);
}

TEST_F(LlamaServer, AStopAsksFirstAndRemovesTheSocket) {
  bring_up();
  EXPECT_EQ(files_in_socket_folder(), 1u);
  stop_runtime(std::chrono::seconds(20));
  EXPECT_TRUE(runtime_->exited().is_set());
  expect("term");
  EXPECT_NE(runtime_->exit_reason().find("exit status 0"), std::string::npos)
      << runtime_->exit_reason();
  runtime_.reset();
  EXPECT_EQ(files_in_socket_folder(), 0u);
}

TEST_F(LlamaServer, AnEngineThatIgnoresTheRequestIsKilled) {
  control_.set_settings({{"ignore_term", true}});
  bring_up();
  stop_runtime(std::chrono::milliseconds(1));
  EXPECT_NE(runtime_->exit_reason().find("SIGKILL"), std::string::npos) << runtime_->exit_reason();
}

}  // namespace
}  // namespace werk::engine::llama_server
