// A node with the real llama-server, from the outside. Engine and model come from the home that
// WERK_HOME names, as the product's own commands put them there; where they are missing the tests
// are skipped, saying why. Engines get one thread: several of them on few cores hinder one another
// badly.
#include <gtest/gtest.h>

#include <boost/json.hpp>
#include <csignal>
#include <fstream>
#include <iostream>
#include <iterator>
#include <thread>

#include "tests/e2e/claude_code.hpp"
#include "tests/support/fold_equal.hpp"
#include "tests/support/http_call.hpp"
#include "tests/support/node_process.hpp"
#include "tests/support/temporary_folder.hpp"
#include "werk/engine/llama_server/managed.hpp"
#include "werk/model/store.hpp"

namespace werk::test {
namespace {

namespace json = boost::json;
namespace llama = engine::llama_server;

std::string read_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

std::vector<std::string> split(const std::string& text, char at) {
  std::vector<std::string> parts;
  std::size_t begin = 0;
  for (std::size_t end = text.find(at); end != std::string::npos; end = text.find(at, begin)) {
    parts.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return parts;
}

class RealEngineTest : public ::testing::Test {
 protected:
  void SetUp() override {
    const char* shared = std::getenv("WERK_HOME");
    if (shared == nullptr) GTEST_SKIP() << "WERK_HOME names no prepared home";
    const char* named = std::getenv("WERK_LLAMA_SERVER");
    const auto managed = llama::usable_managed(shared, llama::this_processor().fingerprint());
    if (named == nullptr && !managed) GTEST_SKIP() << "no engine is installed in WERK_HOME";
    engine_ = named != nullptr ? std::string(named) : managed->executable().string();
    const auto model = model::Store(shared).find("smollm2");
    if (!model) GTEST_SKIP() << "smollm2 is not in WERK_HOME: " << model.error().message;
    model::ImportRequest request;
    request.path = model->weights_path();
    request.id = "smollm2";
    request.mode = model::ImportMode::link;
    ASSERT_TRUE(model::Store(home_.path()).import_file(request));
  }

  NodeProcess::Settings settings(std::vector<std::string> arguments) {
    arguments.insert(arguments.end(), {"--threads", "1", "--threads-batch", "1"});
    return {home_.path(), std::move(arguments), {"WERK_LLAMA_SERVER=" + engine_}};
  }

  static json::object observability(std::uint16_t port) {
    HttpCall call(port, "GET", "/werk/v1/observability");
    return json::parse(call.whole_body()).as_object();
  }
  static json::object runtime_of(std::uint16_t port, const std::string& model) {
    const json::object page = observability(port);
    for (const auto& one : page.at("runtimes").as_array()) {
      if (one.at("model").as_string() == model) return one.as_object();
    }
    throw std::runtime_error("no runtime of " + model);
  }
  static pid_t engine_pid(std::uint16_t port, const std::string& model) {
    return static_cast<pid_t>(runtime_of(port, model).at("pid").to_number<int>());
  }

  static std::size_t starts(const NodeProcess& node) {
    const std::string log = node.log();
    std::size_t count = 0;
    for (std::size_t at = log.find(" starting llama-server "); at != std::string::npos;
         at = log.find(" starting llama-server ", at + 1)) {
      ++count;
    }
    return count;
  }

  // The engine itself, past the node: its socket and key as its own process knows them.
  static std::string ask_engine(pid_t pid, const std::string& body) {
    const std::string process = "/proc/" + std::to_string(pid);
    const auto words = split(read_file(process + "/cmdline"), '\0');
    std::string socket;
    std::string alias;
    for (std::size_t i = 0; i + 1 < words.size(); ++i) {
      if (words[i] == "--host") socket = words[i + 1];
      if (words[i] == "--alias") alias = words[i + 1];
    }
    std::string key;
    for (const std::string& entry : split(read_file(process + "/environ"), '\0')) {
      if (entry.starts_with("LLAMA_API_KEY=")) key = entry.substr(entry.find('=') + 1);
    }
    HttpCall call = HttpCall::to_socket(socket, "POST", "/v1/chat/completions", body,
                                        {"Authorization: Bearer " + key});
    EXPECT_EQ(call.status(), 200) << call.whole_body();
    std::string answer = call.whole_body();
    for (std::size_t at = answer.find(alias); at != std::string::npos; at = answer.find(alias)) {
      answer.replace(at, alias.size(), "smollm2");
    }
    return answer;
  }

  TemporaryFolder home_;
  std::string engine_;
};

TEST_F(RealEngineTest, AWholeAnswerEqualsTheEnginesOwnWholeAnswer) {
  NodeProcess node(settings({"--parallel", "2", "--ctx-size", "1024"}));
  const std::uint16_t port = node.port();
  const std::vector<std::string> variants = {
      R"("max_tokens":12)",
      R"("max_tokens":8,"logprobs":true,"top_logprobs":2)",
      R"("max_tokens":8,"n":2)",
      R"("max_tokens":40,"stop":["you","\n"])",
      R"("max_tokens":60,"response_format":{"type":"json_schema","json_schema":{"name":"x",)"
      R"("schema":)"
      R"({"type":"object","properties":{"zebra":{"type":"integer"},"apple":{"type":"boolean"}},)"
      R"("required":["zebra","apple"],"additionalProperties":false}}})",
  };
  for (const std::string& variant : variants) {
    // Without the prompt cache both runs do exactly the same work.
    const std::string body =
        chat_body("smollm2", R"("temperature":0,"seed":1,"cache_prompt":false,)" + variant);
    HttpCall call = chat(port, body);
    ASSERT_EQ(call.status(), 200) << call.whole_body();
    const std::string folded = call.whole_body();
    const std::string whole = ask_engine(engine_pid(port, "smollm2"), body);
    EXPECT_EQ(blanked(folded), blanked(whole)) << variant;
  }
}

TEST_F(RealEngineTest, AStreamSaysWhatTheWholeAnswerSays) {
  NodeProcess node(settings({"--ctx-size", "1024"}));
  const std::uint16_t port = node.port();
  const std::string more = R"("temperature":0,"seed":1,"max_tokens":16)";
  HttpCall whole = chat(port, chat_body("smollm2", more));
  const auto answer = json::parse(whole.whole_body());
  HttpCall stream = chat(port, chat_body("smollm2", more + R"(,"stream":true)"));
  const std::string events = stream.whole_body();
  EXPECT_EQ(stream.end(), BodyEnd::proper);
  std::string text;
  std::string reason;
  for (const std::string& line : split(events, '\n')) {
    if (!line.starts_with("data: {")) continue;
    const auto chunk = json::parse(line.substr(6));
    EXPECT_EQ(chunk.at("model").as_string(), "smollm2");
    EXPECT_FALSE(chunk.as_object().contains("usage"));
    const auto& choice = chunk.at("choices").as_array().at(0);
    if (choice.at("finish_reason").is_string()) reason = choice.at("finish_reason").as_string();
    const auto* content = choice.at("delta").as_object().if_contains("content");
    if (content != nullptr && content->is_string()) text += content->as_string();
  }
  const auto& choice = answer.at("choices").as_array().at(0);
  EXPECT_EQ(text, std::string(choice.at("message").at("content").as_string()));
  EXPECT_EQ(reason, std::string(choice.at("finish_reason").as_string()));
  EXPECT_TRUE(events.ends_with("data: [DONE]\n\n"));
}

TEST_F(RealEngineTest, ThirtyTwoCallersOfOneColdModelShareOneProcessAndEachIsAnswered) {
  NodeProcess node(settings({"--parallel", "4", "--ctx-size", "512"}));
  const std::uint16_t port = node.port();
  std::vector<std::thread> callers;
  std::vector<int> statuses(32, 0);
  for (std::size_t i = 0; i < statuses.size(); ++i) {
    callers.emplace_back([&, i] {
      HttpCall call = chat(port, chat_body("smollm2", R"("max_tokens":4,"temperature":0)"));
      statuses[i] = call.status();
    });
  }
  for (std::thread& caller : callers) caller.join();
  EXPECT_EQ(statuses, std::vector<int>(32, 200));
  EXPECT_EQ(starts(node), 1u) << node.log();
}

TEST_F(RealEngineTest, TheSizingContractHoldsOnTheRealLaunchLine) {
  NodeProcess node(settings({"--parallel", "4", "--ctx-size", "2048"}));
  const std::uint16_t port = node.port();
  ASSERT_EQ(chat(port, chat_body("smollm2", R"("max_tokens":1)")).status(), 200);
  const auto runtime = runtime_of(port, "smollm2");
  EXPECT_EQ(runtime.at("slots").at("total").to_number<int>(), 4);
  const std::string line =
      read_file("/proc/" + std::to_string(engine_pid(port, "smollm2")) + "/cmdline");
  const auto words = split(line, '\0');
  const auto value_of = [&](std::string_view flag) {
    const auto at = std::find(words.begin(), words.end(), flag);
    return at == words.end() ? std::string() : *(at + 1);
  };
  EXPECT_EQ(value_of("-np"), "4");
  EXPECT_EQ(value_of("-c"), "8192");
}

TEST_F(RealEngineTest, APromptOverTheContextIsRefusedWithBothNumbers) {
  NodeProcess node(settings({"--ctx-size", "256"}));
  const std::uint16_t port = node.port();
  std::string words;
  for (int i = 0; i < 600; ++i) words += "word ";
  const std::string body =
      R"({"model":"smollm2","stream":true,"messages":[{"role":"user","content":")" + words +
      "\"}]}";
  HttpCall call = chat(port, body);
  EXPECT_EQ(call.status(), 400);
  const auto error = json::parse(call.whole_body()).at("error");
  EXPECT_EQ(error.at("code").as_string(), "context_length_exceeded");
  const std::string message(error.at("message").as_string());
  EXPECT_NE(message.find("256"), std::string::npos) << message;
}

TEST_F(RealEngineTest, AForcedToolCallArrivesStreamedAndWhole) {
  TestModel tiny{"tiny", {}};
  tiny.options.speech = TinySpeech::alphabet;
  install_tiny_models(home_.path(), {tiny});
  NodeProcess node(settings({}));
  const std::uint16_t port = node.port();
  const std::string more =
      R"("tools":[{"type":"function","function":{"name":"set_lamp","parameters":{"type":"object",)"
      R"("properties":{"state":{"enum":["on","off"]}},"required":["state"]}}}],)"
      R"("tool_choice":"required",)"
      R"("logit_bias":{"259":80},"max_tokens":80,"temperature":0)";
  HttpCall whole = chat(port, chat_body("tiny", more));
  ASSERT_EQ(whole.status(), 200) << whole.whole_body();
  const auto answer = json::parse(whole.whole_body());
  const auto& choice = answer.at("choices").as_array().at(0);
  EXPECT_EQ(choice.at("finish_reason").as_string(), "tool_calls") << whole.whole_body();
  const auto& call = choice.at("message").at("tool_calls").as_array().at(0);
  EXPECT_EQ(call.at("function").at("name").as_string(), "set_lamp");
  EXPECT_TRUE(
      json::parse(std::string(call.at("function").at("arguments").as_string())).is_object());
  HttpCall stream = chat(port, chat_body("tiny", more + R"(,"stream":true)"));
  const std::string events = stream.whole_body();
  EXPECT_NE(events.find(R"("finish_reason":"tool_calls")"), std::string::npos) << events;
  EXPECT_NE(events.find("set_lamp"), std::string::npos);
}

TEST_F(RealEngineTest, AnEngineKilledInMidStreamEndsTheStreamWithAnErrorAndIsReplaced) {
  NodeProcess node(settings({"--ctx-size", "2048"}));
  const std::uint16_t port = node.port();
  const std::string more = R"("stream":true,"max_tokens":1500,"ignore_eos":true)";
  HttpCall stream = chat(port, chat_body("smollm2", more));
  stream.body_until("content");
  const pid_t first = engine_pid(port, "smollm2");
  ::kill(first, SIGKILL);
  const std::string events = stream.whole_body();
  EXPECT_EQ(stream.end(), BodyEnd::cut);
  EXPECT_NE(events.find(R"("code":"engine_failed")"), std::string::npos) << events;
  EXPECT_NE(events.find("SIGKILL"), std::string::npos) << events;
  EXPECT_EQ(events.find("[DONE]"), std::string::npos);
  EXPECT_EQ(chat(port, chat_body("smollm2", R"("max_tokens":2)")).status(), 200);
  EXPECT_NE(engine_pid(port, "smollm2"), first);
}

TEST_F(RealEngineTest, AClientThatLeavesInDecodeFreesTheOnlySlotForTheNext) {
  NodeProcess node(settings({"--ctx-size", "4096"}));
  const std::uint16_t port = node.port();
  for (const std::string_view streamed : {R"("stream":true,)", ""}) {
    HttpCall leaving = chat(
        port,
        chat_body("smollm2", std::string(streamed) + R"("max_tokens":3500,"ignore_eos":true)"));
    if (!streamed.empty()) {
      leaving.body_until("content");
    } else {
      while (observability(port).at("runtimes").as_array().at(0).at("slots").at("busy") != 1) {
      }
    }
    leaving.close();
    // 3,500 tokens would take most of a minute: the next call runs long before.
    EXPECT_EQ(chat(port, chat_body("smollm2", R"("max_tokens":2)")).status(), 200);
  }
  EXPECT_EQ(observability(port).at("calls").at("cancelled").to_number<int>(), 2);
}

TEST_F(RealEngineTest, StreamsThatRunAtATerminationEndWholeAndNoEngineIsLeft) {
  NodeProcess node(settings({"--parallel", "3", "--ctx-size", "512"}));
  const std::uint16_t port = node.port();
  std::vector<HttpCall> streams;
  for (int i = 0; i < 3; ++i) {
    streams.push_back(
        chat(port, chat_body("smollm2", R"("stream":true,"max_tokens":60,"ignore_eos":true)")));
  }
  for (HttpCall& stream : streams) stream.body_until("content");
  const pid_t engine = engine_pid(port, "smollm2");
  node.signal(SIGTERM);
  for (HttpCall& stream : streams) {
    EXPECT_TRUE(stream.whole_body().ends_with("data: [DONE]\n\n"));
    EXPECT_EQ(stream.end(), BodyEnd::proper);
  }
  EXPECT_EQ(node.wait_exit(), 0);
  EXPECT_EQ(::kill(engine, 0), -1);
}

// Three models of equal size: the small one under other names of the same length.
class ManyModelsTest : public RealEngineTest {
 protected:
  void SetUp() override {
    RealEngineTest::SetUp();
    if (IsSkipped()) return;
    const auto original = model::Store(home_.path()).find("smollm2");
    ASSERT_TRUE(original);
    std::string bytes = read_file(original->weights_path().string());
    const std::size_t name = bytes.find(original->manifest.name);
    ASSERT_NE(name, std::string::npos);
    for (const std::string id : {"model-a", "model-b", "model-c"}) {
      bytes[name] = id.back();
      const TemporaryFolder folder;
      const std::filesystem::path file = folder / "model.gguf";
      std::ofstream(file, std::ios::binary) << bytes;
      model::ImportRequest request;
      request.path = file;
      request.id = id;
      ASSERT_TRUE(model::Store(home_.path()).import_file(request));
    }
  }
  // One call of the given kind; true if its answer is whole and in the dialect's form.
  static bool ask(std::uint16_t port, const std::string& model, std::size_t kind) {
    const bool streamed = kind % 2 == 0;
    const std::string more =
        R"("max_tokens":12,"temperature":0,"stream":)" + std::string(streamed ? "true" : "false");
    const bool messages = kind % 4 >= 2;
    HttpCall call(port, "POST", messages ? "/v1/messages" : "/v1/chat/completions",
                  chat_body(model, more));
    const std::string& answer = call.whole_body();
    if (call.status() != 200 || call.end() != BodyEnd::proper) return false;
    if (streamed)
      return answer.ends_with(messages ? "{\"type\":\"message_stop\"}\n\n" : "data: [DONE]\n\n");
    const auto whole = json::parse(answer).as_object();
    return whole.at("model").as_string() == model &&
           whole.contains(messages ? "stop_reason" : "choices");
  }
};

TEST_F(ManyModelsTest, SixClientsInBothDialectsAreServedByThreeProcesses) {
  NodeProcess node(settings({"--parallel", "2", "--ctx-size", "512"}));
  const std::uint16_t port = node.port();
  std::vector<std::thread> clients;
  std::vector<int> right(6, 0);
  for (std::size_t client = 0; client < right.size(); ++client) {
    clients.emplace_back([&, client] {
      const std::vector<std::string> models = {"model-a", "model-b", "model-c"};
      for (std::size_t turn = 0; turn < 6; ++turn) {
        right[client] += ask(port, models[(client + turn) % 3], client + turn) ? 1 : 0;
      }
    });
  }
  for (std::thread& client : clients) client.join();
  EXPECT_EQ(right, std::vector<int>(6, 6)) << node.log();
  EXPECT_EQ(starts(node), 3u);
  EXPECT_EQ(observability(port).at("runtimes").as_array().size(), 3u);
}

TEST_F(ManyModelsTest, SixClientsOfOneModelAreServedByOneProcess) {
  NodeProcess node(settings({"--parallel", "2", "--ctx-size", "512"}));
  const std::uint16_t port = node.port();
  std::vector<std::thread> clients;
  std::vector<int> right(6, 0);
  for (std::size_t client = 0; client < right.size(); ++client) {
    clients.emplace_back([&, client] { right[client] = ask(port, "model-a", client) ? 1 : 0; });
  }
  for (std::thread& client : clients) client.join();
  EXPECT_EQ(right, std::vector<int>(6, 1));
  EXPECT_EQ(starts(node), 1u);
}

// The SDKs that tests/e2e/sdk/prepare installed; WERK_TEST_SDKS names their folder.
class SdkTest : public RealEngineTest {
 protected:
  void SetUp() override {
    RealEngineTest::SetUp();
    if (IsSkipped()) return;
    const char* folder = std::getenv("WERK_TEST_SDKS");
    if (folder == nullptr || !std::filesystem::exists(std::string(folder) + "/ready")) {
      GTEST_SKIP() << "the official SDKs are not prepared (tests/e2e/sdk/prepare)";
    }
    sdks_ = folder;
  }
  // Runs a check to its end; its output is shown.
  static int run(const std::string& command) { return std::system(command.c_str()); }

  std::string sdks_;
};

TEST_F(SdkTest, TheOfficialSdksWorkUnchangedAndCurlToo) {
  NodeProcess node(settings({"--parallel", "2", "--ctx-size", "1024"}));
  const std::string url = "http://127.0.0.1:" + std::to_string(node.port()) + "/v1";
  EXPECT_EQ(run(sdks_ + "/bin/python " + std::string(WERK_SDK_CHECKS) + "/openai_check.py " + url +
                " smollm2"),
            0);
  EXPECT_EQ(run(sdks_ + "/js/node " + sdks_ + "/js/openai_check.mjs " + url + " smollm2"), 0);
  EXPECT_EQ(
      run("curl -sS --fail-with-body -o /dev/null " + url +
          R"(/chat/completions -H 'Content-Type: application/json' -d )"
          R"('{"model":"smollm2","max_tokens":2,"messages":[{"role":"user","content":"hi"}]}')"),
      0);
}

TEST_F(SdkTest, TheAnthropicSdksWorkUnchanged) {
  NodeProcess node(settings({"--parallel", "2", "--ctx-size", "1024"}));
  const std::string arguments = " http://127.0.0.1:" + std::to_string(node.port()) + " smollm2";
  EXPECT_EQ(run(sdks_ + "/bin/python " + WERK_SDK_CHECKS + "/anthropic_check.py" + arguments), 0);
  EXPECT_EQ(run(sdks_ + "/js/node " + sdks_ + "/js/anthropic_check.mjs" + arguments), 0);
}

// Its smallest form; the full one is more than this model's context.
class ClaudeCodeOnRealEngineTest : public RealEngineTest {
 protected:
  void SetUp() override {
    RealEngineTest::SetUp();
    if (IsSkipped()) return;
    if (ClaudeCode::program().empty()) GTEST_SKIP() << ClaudeCode::kMissing;
  }
};

TEST_F(ClaudeCodeOnRealEngineTest, TheSmallFormIsAnsweredAndGoesOnFromTheCache) {
  NodeProcess::Settings greedy = settings({"--ctx-size", "8192", "--alias", "claude-*=smollm2"});
  // So small a model finds no end by itself without a little help.
  greedy.environment.emplace_back("WERK_LLAMA_ARGS=--temp 0 --logit-bias 2+8");
  NodeProcess node(std::move(greedy));
  ClaudeCode claude(node.port(),
                    {"ANTHROPIC_MODEL=claude-sonnet-4-5", "CLAUDE_CODE_MAX_OUTPUT_TOKENS=60"});
  std::vector<std::string> words = {"Say hello.", "--system-prompt", "Be brief.", "--tools",
                                    "",           "--output-format", "json"};
  const auto count = [](const ClaudeRun& run, std::string_view member) {
    return run.result().at("usage").at(member).to_number<int>();
  };
  const ClaudeRun first = claude.run(words);
  ASSERT_EQ(first.status, 0) << first.out << first.err << node.log();
  EXPECT_NE(first.answer(), "");
  EXPECT_GT(count(first, "input_tokens"), 100);
  EXPECT_GT(count(first, "output_tokens"), 0);
  words.emplace_back("--continue");
  const ClaudeRun second = claude.run(words);
  ASSERT_EQ(second.status, 0) << second.out << second.err << node.log();
  EXPECT_NE(second.answer(), "");
  EXPECT_GT(count(second, "cache_read_input_tokens"), 100) << second.out;
  EXPECT_EQ(starts(node), 1u);
}

}  // namespace
}  // namespace werk::test
