// A node with the real ONNX GenAI and Transformers in resident workers, from the outside. The
// environments and the models come from the folder that WERK_TEST_WORKERS names
// (tests/workers/prepare); what is missing there is skipped, saying so. Workers get one thread.
#include <gtest/gtest.h>
#include <signal.h>

#include <boost/json.hpp>
#include <filesystem>
#include <fstream>

#include "tests/e2e/chat_answer.hpp"
#include "tests/e2e/test_node.hpp"
#include "tests/support/http_call.hpp"
#include "tests/support/node_process.hpp"
#include "tests/support/temporary_folder.hpp"
#include "werk/engine/llama_server/managed.hpp"
#include "werk/model/store.hpp"

namespace werk::test {
namespace {

namespace fs = std::filesystem;
namespace json = boost::json;

constexpr std::string_view kRivers = R"("messages":[{"role":"user","content":"Name a river."}])";

class RealWorkers : public ::testing::Test {
 protected:
  void SetUp() override {
    const char* prepared = std::getenv("WERK_TEST_WORKERS");
    if (prepared == nullptr || !fs::exists(prepared))
      GTEST_SKIP() << "WERK_TEST_WORKERS names no prepared folder";
    prepared_ = prepared;
  }

  bool has(std::string_view part) const { return fs::exists(prepared_ / part); }

  // In place, so that nothing is copied; the number makes an identity of its own.
  void import_onnx(const std::string& id, int number) {
    const fs::path folder = folders_ / id;
    fs::create_directories(folder);
    for (const auto& file : fs::directory_iterator(prepared_ / "smollm2-onnx")) {
      const fs::path name = file.path().filename();
      if (name == "genai_config.json") continue;
      fs::create_symlink(file.path(), folder / name);
    }
    std::ifstream config(prepared_ / "smollm2-onnx" / "genai_config.json");
    std::ofstream(folder / "genai_config.json")
        << config.rdbuf() << std::string(static_cast<std::size_t>(number), '\n');
    import(folder, id);
  }
  void import(const fs::path& path, const std::string& id) {
    model::ImportRequest request;
    request.path = path;
    request.id = id;
    request.mode = model::ImportMode::link;
    const auto imported = model::Store(home_.path()).import_file(request);
    ASSERT_TRUE(imported.has_value()) << imported.error().message;
  }

  NodeProcess::Settings settings(std::vector<std::string> arguments,
                                 std::vector<std::string> environment = {}) {
    arguments.insert(arguments.end(), {"--threads", "1", "--threads-batch", "1"});
    for (const auto* each : {"ONNX_GENAI onnx-genai", "TRANSFORMERS transformers"}) {
      const std::string words = each;
      const std::size_t blank = words.find(' ');
      environment.push_back("WERK_" + words.substr(0, blank) + "_PYTHON=" +
                            (prepared_ / words.substr(blank + 1) / "bin" / "python").string());
    }
    return {home_.path(), std::move(arguments), std::move(environment)};
  }

  static ChatAnswer whole(std::uint16_t port, const std::string& model, const std::string& more) {
    HttpCall call(port, "POST", "/v1/chat/completions", body(model, more));
    EXPECT_EQ(call.status(), 200) << call.whole_body();
    return read_whole(call.whole_body());
  }
  static std::string body(const std::string& model, const std::string& more) {
    return R"({"model":")" + model + "\"," + std::string(kRivers) + "," + more + "}";
  }
  static json::object runtime(std::uint16_t port, const std::string& model) {
    HttpCall call(port, "GET", "/werk/v1/observability");
    return runtime_of(json::parse(call.whole_body()).as_object(), model);
  }

  void expect_both_dialects(const std::string& model, const std::string& backend);

  fs::path prepared_;
  TemporaryFolder home_;
  TemporaryFolder folders_;
};

void RealWorkers::expect_both_dialects(const std::string& model, const std::string& backend) {
  NodeProcess node(settings({"--backend", backend, "--ctx-size", "1024"}));
  const std::uint16_t port = node.port();
  const std::string greedy = R"("max_tokens":12,"temperature":0)";
  const ChatAnswer answer = whole(port, model, greedy);
  EXPECT_FALSE(answer.content.empty());
  EXPECT_EQ(answer.finish_reason, "length");
  HttpCall stream(port, "POST", "/v1/chat/completions", body(model, greedy + R"(,"stream":true)"));
  const ChatAnswer streamed = read_stream(stream.whole_body());
  EXPECT_EQ(streamed.content, answer.content);
  EXPECT_TRUE(streamed.done);
  HttpCall message(port, "POST", "/v1/messages", body(model, greedy));
  const json::value told = json::parse(message.whole_body());
  EXPECT_EQ(told.at("content").at(0).at("text").as_string(), answer.content);
  HttpCall count(port, "POST", "/v1/messages/count_tokens", body(model, greedy));
  EXPECT_EQ(json::parse(count.whole_body()).at("input_tokens"),
            told.at("usage").at("input_tokens"));
  const std::string seeded = R"("max_tokens":12,"temperature":1.5,"seed":)";
  const ChatAnswer first = whole(port, model, seeded + "7");
  EXPECT_EQ(whole(port, model, seeded + "7").content, first.content) << "the same seed";
  EXPECT_NE(whole(port, model, seeded + "8").content, first.content) << "another seed";
  const std::string stop = answer.content.substr(answer.content.find_first_not_of(' ') + 2, 1);
  const ChatAnswer stopped =
      whole(port, model, greedy + R"(,"stop":[)" + json::serialize(json::value(stop)) + "]");
  EXPECT_EQ(stopped.finish_reason, "stop");
  EXPECT_EQ(stopped.content, answer.content.substr(0, answer.content.find(stop)));
  // The official SDKs, with what they take for granted.
  const char* sdks = std::getenv("WERK_TEST_SDKS");
  if (sdks == nullptr || !fs::exists(fs::path(sdks) / "ready")) return;
  const std::string address = " http://127.0.0.1:" + std::to_string(port);
  const std::string python = std::string(sdks) + "/bin/python " + WERK_SDK_CHECKS;
  const std::string js = std::string(sdks) + "/js/node " + sdks + "/js";
  EXPECT_EQ(std::system((python + "/anthropic_check.py" + address + " " + model).c_str()), 0);
  EXPECT_EQ(std::system((js + "/anthropic_check.mjs" + address + " " + model).c_str()), 0);
  EXPECT_EQ(std::system((python + "/openai_small_check.py" + address + "/v1 " + model).c_str()), 0);
}

TEST_F(RealWorkers, OnnxGenAiAnswersBothDialectsAndTheSdks) {
  if (!has("onnx-genai") || !has("smollm2-onnx")) GTEST_SKIP() << "ONNX GenAI is not prepared";
  import_onnx("onnx", 0);
  expect_both_dialects("onnx", "onnx-genai");
}

TEST_F(RealWorkers, TransformersAnswersBothDialectsAndTheSdks) {
  if (!has("transformers") || !has("smollm2-hf")) GTEST_SKIP() << "Transformers is not prepared";
  import(prepared_ / "smollm2-hf", "hf");
  expect_both_dialects("hf", "transformers");
}

TEST_F(RealWorkers, AClientThatLeavesAKilledWorkerAndAKilledNodeLeaveNothingBehind) {
  if (!has("onnx-genai") || !has("smollm2-onnx")) GTEST_SKIP() << "ONNX GenAI is not prepared";
  import_onnx("onnx", 0);
  NodeProcess node(settings({"--backend", "onnx-genai"}));
  const std::uint16_t port = node.port();
  const std::string endless = R"("max_tokens":4000,"temperature":0,"stream":true)";
  {
    HttpCall left(port, "POST", "/v1/chat/completions", body("onnx", endless));
    left.body_until("content");
  }
  EXPECT_EQ(whole(port, "onnx", R"("max_tokens":3)").finish_reason, "length");
  HttpCall cut(port, "POST", "/v1/chat/completions", body("onnx", endless));
  cut.body_until("content");
  const auto killed = static_cast<pid_t>(runtime(port, "onnx").at("pid").to_number<int>());
  ::kill(killed, SIGKILL);
  EXPECT_NE(cut.whole_body().find("killed by SIGKILL"), std::string::npos);
  HttpCall held(port, "POST", "/v1/chat/completions", body("onnx", endless));
  held.body_until("content");
  const auto worker = static_cast<pid_t>(runtime(port, "onnx").at("pid").to_number<int>());
  EXPECT_NE(worker, killed);
  node.signal(SIGKILL);
  node.wait_exit();
  held.whole_body();
  // Its parent is gone, so the kernel ends it; the signal 0 asks until nobody has that number.
  const auto limit = std::chrono::steady_clock::now() + std::chrono::seconds(30);
  while (::kill(worker, 0) == 0 && std::chrono::steady_clock::now() < limit) {
  }
  EXPECT_NE(::kill(worker, 0), 0) << "a Python process outlived its node";
}

TEST_F(RealWorkers, ThreeOnnxModelsAndOneGgufServeSixClientsInBothDialects) {
  if (!has("onnx-genai") || !has("smollm2-onnx")) GTEST_SKIP() << "ONNX GenAI is not prepared";
  const char* shared = std::getenv("WERK_HOME");
  const auto gguf = model::Store(shared == nullptr ? "" : shared).find("smollm2");
  const auto engine = engine::llama_server::usable_managed(
      shared == nullptr ? "" : shared, engine::llama_server::this_processor().fingerprint());
  if (!gguf || !engine) GTEST_SKIP() << "WERK_HOME holds no llama-server with smollm2";
  std::vector<std::string> models = {"gguf"};
  import(gguf->weights_path(), "gguf");
  for (int number = 0; number < 3; ++number) {
    models.push_back("onnx" + std::to_string(number));
    import_onnx(models.back(), number);
  }
  NodeProcess node(settings({"--backend", "auto", "--parallel", "4", "--ctx-size", "1024"},
                            {"WERK_ONNX_GENAI_MODEL_CACHE_SIZE=3",
                             "WERK_LLAMA_SERVER=" + engine->executable().string()}));
  const std::uint16_t port = node.port();
  const auto caller = [&](std::size_t client) {
    int right = 0;
    for (std::size_t i = 0; i < models.size(); ++i) {
      const std::string& model = models[(client + i) % models.size()];
      const bool streams = (client + i) % 2 == 0;
      const std::string more =
          std::string(R"("max_tokens":8)") + (streams ? R"(,"stream":true)" : "");
      const bool messages = client % 3 == 0;
      HttpCall call(port, "POST", messages ? "/v1/messages" : "/v1/chat/completions",
                    body(model, more));
      const std::string& answer = call.whole_body();
      // The model may end by itself before its limit.
      const auto says = [&answer](std::string_view reason) {
        return answer.find("\"" + std::string(reason) + "\"") != std::string::npos;
      };
      const bool ended =
          messages ? says("max_tokens") || says("end_turn") : says("length") || says("stop");
      if (call.status() == 200 && ended) ++right;
    }
    return right;
  };
  EXPECT_EQ(run_callers(6, caller), std::vector<int>(6, static_cast<int>(models.size())));
  HttpCall page(port, "GET", "/werk/v1/observability");
  EXPECT_EQ(json::parse(page.whole_body()).at("runtimes").as_array().size(), 4u);
  node.signal(SIGTERM);
  EXPECT_EQ(node.wait_exit(), 0);
}

}  // namespace
}  // namespace werk::test
