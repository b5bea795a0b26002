// `werk bench` against the real node over fake engines, and against a server that is no node: what
// its file says, which is what the project's specification names, and how it ends.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <fstream>

#include "tests/e2e/chat_answer.hpp"
#include "tests/e2e/test_node.hpp"
#include "tests/support/command_process.hpp"

namespace werk::test {
namespace {

namespace json = boost::json;

json::object read_json(const std::filesystem::path& path) {
  std::ifstream file(path);
  std::string text(std::istreambuf_iterator<char>(file), {});
  return json::parse(text).as_object();
}

const json::value& at(const json::value& page, std::string_view pointer) {
  return page.at_pointer(pointer);
}

class BenchTest : public ::testing::Test {
 protected:
  CommandProcess::Settings settings(std::vector<std::string> words, const TestNode& node) const {
    words.insert(words.begin(), "bench");
    return {std::move(words), {"WERK_HOME=" + node.home().string()}, Around::nothing, {}};
  }
  CommandRun run(std::vector<std::string> words, TestNode& node) const {
    node.port();  // once it serves
    CommandProcess command(settings(std::move(words), node));
    CommandRun done;
    done.status = command.wait_exit();
    done.out = command.out();
    done.err = command.err();
    return done;
  }
  std::string output(std::string_view name = "results.json") const {
    return (folder_ / std::string(name)).string();
  }
  json::object results() const { return read_json(output()); }

  TemporaryFolder folder_;
};

TEST_F(BenchTest, ItsFileHasTheFieldsOfTheSpecification) {
  TestNode node({.models = {{"a"}, {"b"}}, .arguments = {"--parallel", "4"}});
  const CommandRun done =
      run({"--model", "a", "--model", "b", "--warmup", "--requests", "6", "--concurrency", "1,4",
           "--max-tokens", "8", "--seed", "5", "--output", output()},
          node);
  EXPECT_EQ(done.status, 0) << done.err;
  EXPECT_EQ(done.err, "");
  EXPECT_NE(done.out.find("CALLERS"), std::string::npos) << done.out;
  const json::value page = results();
  EXPECT_EQ(page.at("models"), (json::array{"a", "b"}));
  EXPECT_TRUE(page.at("warmup").as_bool());
  EXPECT_TRUE(page.at("notes").is_array());
  EXPECT_FALSE(page.at("interrupted").as_bool());
  EXPECT_EQ(page.at("start_state").as_string(), "warm");
  EXPECT_TRUE(at(page, "/versions/server").as_string().starts_with("werk "));
  EXPECT_GT(at(page, "/hardware/cores").to_number<int>(), 0);
  const json::array& runs = page.at("runs").as_array();
  ASSERT_EQ(runs.size(), 2u);
  EXPECT_EQ(runs[0].at("concurrency").as_int64(), 1);
  EXPECT_EQ(runs[1].at("concurrency").as_int64(), 4);
  for (const json::value& one : runs) {
    EXPECT_EQ(one.at("successful_requests").as_int64(), 6);
    EXPECT_EQ(one.at("output_tokens").as_int64(), 48);
    EXPECT_GT(one.at("elapsed_seconds").as_double(), 0);
    EXPECT_GT(one.at("aggregate_tokens_per_second").as_double(), 0);
    EXPECT_GT(one.at("ttft_median_seconds").as_double(), 0);
    EXPECT_TRUE(at(one, "/percentiles/inter_token_seconds/p99").is_number());
    EXPECT_EQ(one.at("engine_processes").as_int64(), 2) << "one for each model, however many ask";
    EXPECT_EQ(at(one, "/observability_before/schema").as_int64(), 1);
    EXPECT_EQ(at(one, "/observability_after/runtimes").as_array().size(), 2u);
    ASSERT_EQ(one.at("requests").as_array().size(), 6u);
    std::size_t number = 0;
    for (const json::value& request : one.at("requests").as_array()) {
      EXPECT_EQ(request.at("model").as_string(), number++ % 2 == 0 ? "a" : "b");
      EXPECT_GT(request.at("elapsed_seconds").as_double(), 0);
      EXPECT_GT(request.at("ttft_seconds").as_double(), 0);
      EXPECT_EQ(request.at("completion_tokens").as_int64(), 8);
      EXPECT_EQ(at(request, "/usage/completion_tokens").as_int64(), 8);
      EXPECT_GT(request.at("request_tokens_per_second").as_double(), 0);
      EXPECT_GE(request.at("queue_seconds").as_double(), 0);
      EXPECT_GE(request.at("load_seconds").as_double(), 0);
      EXPECT_TRUE(request.at("error").is_null());
      EXPECT_EQ(request.at("finish_reason").as_string(), "stop");
    }
  }
}

TEST_F(BenchTest, MeasuresTheMessagesDialectAndAColdStart) {
  TestNode node({});
  const CommandRun done = run({"--model", "a", "--dialect", "anthropic", "--requests", "3",
                               "--max-tokens", "8", "--output", output(), "--json"},
                              node);
  EXPECT_EQ(done.status, 0) << done.err;
  const json::value page = results();
  EXPECT_EQ(json::parse(done.out), page);
  EXPECT_EQ(page.at("start_state").as_string(), "cold");
  EXPECT_EQ(page.at("dialect").as_string(), "anthropic");
  const json::value& request = at(page, "/runs/0/requests/2");
  EXPECT_EQ(request.at("completion_tokens").as_int64(), 8);
  EXPECT_EQ(at(request, "/usage/output_tokens").as_int64(), 8);
  EXPECT_TRUE(request.at("ttft_seconds").is_double());
  EXPECT_EQ(request.at("finish_reason").as_string(), "end_turn");
  const json::value& cold = at(page, "/runs/0/requests/0");
  EXPECT_GT(cold.at("load_seconds").as_double(), request.at("load_seconds").as_double());
  EXPECT_LT(cold.at("queue_seconds").as_double(), cold.at("load_seconds").as_double())
      << "to wait for a load is not to wait in line";
}

TEST_F(BenchTest, ARequestThatWaitedInLineSaysHowLong) {
  using Clock = std::chrono::steady_clock;
  TestNode node({.engine = {{"reply", {{"hold", true}}}, {"replies", {{{"hold", false}}}}},
                 .arguments = {"--parallel", "1"}});
  node.port();
  CommandProcess command(settings(
      {"--model", "a", "--warmup", "--requests", "2", "--concurrency", "2", "--output", output()},
      node));
  node.generation();  // the warm-up
  const EngineEvent first = node.generation();
  node.await_waiting(1);
  const auto waits = Clock::now();
  node.observability();
  const std::chrono::duration<double> at_least = Clock::now() - waits;
  node.engines().release(first.engine, first.request());
  const EngineEvent second = node.generation();
  node.engines().release(second.engine, second.request());
  EXPECT_EQ(command.wait_exit(), 0) << command.err();
  const json::value page = results();
  std::vector<double> queued;
  for (const json::value& request : at(page, "/runs/0/requests").as_array())
    queued.push_back(request.at("queue_seconds").as_double());
  std::ranges::sort(queued);
  ASSERT_EQ(queued.size(), 2u);
  EXPECT_GE(queued[1], at_least.count()) << "it was in line all that time";
  EXPECT_LT(queued[0], queued[1]) << "the other found the slot free";
}

TEST_F(BenchTest, WaitsThatTheNodeNoLongerTellsAreNullAndCounted) {
  TestNode node({.engine = {{"hold_until", 80}}, .arguments = {"--parallel", "80"}});
  const CommandRun done = run({"--model", "a", "--requests", "80", "--concurrency", "80",
                               "--max-tokens", "2", "--output", output()},
                              node);
  EXPECT_EQ(done.status, 0) << done.err;
  const json::value page = results();
  std::size_t told = 0;
  for (const json::value& request : at(page, "/runs/0/requests").as_array())
    told += request.at("queue_seconds").is_double() ? 1 : 0;
  EXPECT_GE(told, 64u) << "as many as the node's page holds";
  const std::string note = "how long " + std::to_string(80 - told) + " of the requests waited";
  EXPECT_EQ(json::serialize(page.at("notes")).find(note) != std::string::npos, told < 80);
}

TEST_F(BenchTest, ByRateRequestsComeWhoeverStillWaits) {
  TestNode node({.engine = {{"hold_until", 12}}, .arguments = {"--parallel", "12"}});
  const CommandRun done = run({"--model", "a", "--rate", "500", "--requests", "12", "--output",
                               output(), "--prompt-tokens", "6"},
                              node);
  EXPECT_EQ(done.status, 0) << done.err;
  const json::value page = results();
  EXPECT_TRUE(at(page, "/runs/0/concurrency").is_null());
  EXPECT_EQ(at(page, "/runs/0/rate").as_double(), 500);
  EXPECT_EQ(at(page, "/runs/0/successful_requests").as_int64(), 12)
      << "no answer ends before all twelve have been asked for";
  EXPECT_GT(at(page, "/runs/0/requests/11/begun_seconds").as_double(), 0);
  EXPECT_EQ(node.generations(), 12u);
}

TEST_F(BenchTest, AWarmUpThatFailsTellsTheServersWordsAndEndsIt) {
  TestNode node({});
  const CommandRun done = run({"--model", "nonesuch", "--warmup"}, node);
  EXPECT_EQ(done.status, 1);
  EXPECT_EQ(done.out, "");
  EXPECT_NE(done.err.find("nonesuch"), std::string::npos) << done.err;
  EXPECT_NE(done.err.find("HTTP 404"), std::string::npos) << done.err;
}

TEST_F(BenchTest, FailedRequestsAreListedWithTheServersErrorAndMakeTheStatusOne) {
  TestNode node(
      {.engine = {
           {"replies",
            {{{"tokens", 3}}, {{"die", {{"after", 6}, {"how", "error"}}}}, {{"tokens", 3}}}}}});
  const CommandRun done =
      run({"--model", "a", "--model", "nonesuch", "--requests", "6", "--output", output()}, node);
  EXPECT_EQ(done.status, 1) << done.err;
  EXPECT_NE(done.out.find("3 failed: HTTP 404"), std::string::npos) << done.out;
  const json::value page = results();
  EXPECT_EQ(at(page, "/runs/0/failed_requests").as_int64(), 4);
  EXPECT_EQ(at(page, "/runs/0/successful_requests").as_int64(), 2);
  const json::value& unknown = at(page, "/runs/0/requests/1");
  EXPECT_EQ(unknown.at("status").as_int64(), 404);
  EXPECT_TRUE(unknown.at("error").as_string().starts_with("HTTP 404: ")) << unknown;
  EXPECT_TRUE(unknown.at("ttft_seconds").is_null());
  const json::value& broken = at(page, "/runs/0/requests/2");
  EXPECT_EQ(broken.at("status").as_int64(), 200);
  EXPECT_TRUE(broken.at("error").is_string());
  EXPECT_TRUE(broken.at("ttft_seconds").is_double()) << "what came before it is kept";
}

TEST_F(BenchTest, CtrlCEndsItAtOnceAndWritesWhatThereIs) {
  TestNode node({.engine = {{"reply", {{"hold", true}}}, {"replies", {{{"hold", false}}}}},
                 .arguments = {"--parallel", "2"}});
  node.port();
  CommandProcess command(settings(
      {"--model", "a", "--requests", "5", "--concurrency", "2", "--output", output()}, node));
  node.generation();
  const EngineEvent second = node.generation();
  const EngineEvent third = node.generation();
  command.signal(SIGINT);
  EXPECT_EQ(command.wait_exit(), 130) << command.err();
  const json::value page = results();
  EXPECT_TRUE(page.at("interrupted").as_bool());
  EXPECT_EQ(at(page, "/runs/0/successful_requests").as_int64(), 1);
  EXPECT_EQ(at(page, "/runs/0/failed_requests").as_int64(), 0);
  EXPECT_EQ(at(page, "/runs/0/unfinished_requests").as_int64(), 4);
  EXPECT_NE(command.out().find("interrupted"), std::string::npos) << command.out();
  node.engines().expect_from(second.engine, "closed");
  node.engines().expect_from(third.engine, "closed");
}

TEST_F(BenchTest, TwoServersAreMeasuredInTurnAndTheirRatiosTold) {
  TestNode node({.arguments = {"--parallel", "2"}});
  const std::string url = "http://127.0.0.1:" + std::to_string(node.port());
  const CommandRun done = run({"--model", "a", "--against", url + "/v1", "--repeat", "2",
                               "--requests", "2", "--output", output()},
                              node);
  EXPECT_EQ(done.status, 0) << done.err;
  EXPECT_NE(done.out.find("A / B"), std::string::npos) << done.out;
  const json::value page = results();
  std::string order;
  for (const json::value& one : page.at("runs").as_array()) {
    order += one.at("side").as_string();
    order += one.at("discarded").as_bool() ? "-" : "";
  }
  EXPECT_EQ(order, "A-B-BAAB");
  EXPECT_EQ(at(page, "/ratios/0/ttft_median_seconds/pairs").as_int64() +
                at(page, "/ratios/0/ttft_median_seconds/dropped").as_int64(),
            2);
  EXPECT_TRUE(at(page, "/ratios/0/aggregate_tokens_per_second/median").is_double());
}

// An engine that nobody manages: it answers every call with one short text.
class LoneServer {
 public:
  explicit LoneServer(const std::string& alias)
      : server_({{"-m", "x.gguf", "--alias", alias, "--host", "127.0.0.1", "--port", "0"},
                 engines_.environment(),
                 Around::nothing,
                 EngineControl::program()}),
        address_(engines_.expect("listening").text("address")) {}

  const std::string& address() const { return address_; }
  // The models that its calls named, in order.
  std::vector<std::string> asked() {
    engines_.open_max(0);  // behind all that it has told before
    std::vector<std::string> models;
    for (const EngineEvent& event : engines_.all("request")) {
      const std::string body = event.text("body");
      if (!body.empty()) models.emplace_back(json::parse(body).at("model").as_string());
    }
    return models;
  }

 private:
  EngineControl engines_ = EngineControl(
      {{"reply",
        {{"events",
          {R"({"choices":[{"delta":{"content":"x"}}]})",
           R"({"choices":[{"delta":{},"finish_reason":"stop"}]})", "[DONE]"}}}}});
  CommandProcess server_;
  std::string address_;
};

TEST_F(BenchTest, EachModelMayHaveAServerOfItsOwnOnTheOtherSide) {
  LoneServer all("all");
  LoneServer only_y("y");
  const CommandRun done = run_werk(
      {"bench", "--url", all.address(), "--model", "x", "--model", "y", "--against", all.address(),
       only_y.address(), "--requests", "4", "--repeat", "1", "--output", output()},
      {"WERK_HOME=" + folder_.path().string()});
  EXPECT_EQ(done.status, 0) << done.err;
  EXPECT_EQ(only_y.asked(), (std::vector<std::string>{"y", "y", "y", "y"}));
  EXPECT_EQ(std::ranges::count(all.asked(), "x"), 8);
  EXPECT_EQ(std::ranges::count(all.asked(), "y"), 4);
  const std::string both = all.address() + ", " + only_y.address();
  EXPECT_EQ(results().at("against").as_string(), both);
}

TEST_F(BenchTest, WhatAServerThatIsNoNodeDoesNotTellIsNull) {
  const LoneServer server("x");
  const CommandRun done =
      run_werk({"bench", "--url", server.address(), "--model", "x", "--requests", "2", "--output",
                output()},
               {"WERK_HOME=" + folder_.path().string()});
  EXPECT_EQ(done.status, 0) << done.err;
  EXPECT_NE(done.out.find("counted no tokens"), std::string::npos) << done.out;
  const json::value page = results();
  const json::value& one = at(page, "/runs/0");
  EXPECT_EQ(one.at("successful_requests").as_int64(), 2);
  for (const std::string_view name : {"observability_before", "observability_after",
                                      "engine_processes", "aggregate_tokens_per_second"})
    EXPECT_TRUE(one.at(name).is_null()) << name;
  EXPECT_TRUE(page.at("start_state").is_null());
  for (const std::string_view name :
       {"completion_tokens", "usage", "request_tokens_per_second", "queue_seconds", "load_seconds"})
    EXPECT_TRUE(at(one, "/requests/0").at(name).is_null()) << name;
}

TEST_F(BenchTest, AServerThatBreaksOffIsCalledAServer) {
  EngineControl engines({{"reply", {{"die", {{"after", 3}, {"how", "reset"}}}}}});
  CommandProcess server({{"-m", "x.gguf", "--alias", "x", "--host", "127.0.0.1", "--port", "0"},
                         engines.environment(),
                         Around::nothing,
                         EngineControl::program()});
  const std::string address = engines.expect("listening").text("address");
  const CommandRun done =
      run_werk({"bench", "--url", address, "--model", "x", "--requests", "1", "--output", output()},
               {"WERK_HOME=" + folder_.path().string()});
  EXPECT_EQ(done.status, 1) << done.err;
  const json::value page = results();
  const auto& error = at(page, "/runs/0/requests/0/error").as_string();
  EXPECT_TRUE(error.starts_with("the server closed the connection")) << error;
}

TEST_F(BenchTest, PromptsOfAFileReachTheEngineInTurn) {
  TestNode node({});
  const std::string prompts = (folder_ / "prompts.jsonl").string();
  std::ofstream(prompts) << "plain text\n"
                         << R"({"messages":[{"role":"system","content":"be brief"},)"
                         << R"({"role":"user","content":"hi"}],"top_k":3})"
                         << "\n";
  const CommandRun done =
      run({"--model", "a", "--prompts", prompts, "--requests", "2", "--ignore-eos"}, node);
  EXPECT_EQ(done.status, 0) << done.err;
  const json::value first = json::parse(node.generation().text("body"));
  EXPECT_EQ(at(first, "/messages/0/content").as_string(), "plain text");
  EXPECT_TRUE(first.at("ignore_eos").as_bool());
  EXPECT_EQ(first.at("seed").as_int64(), 1);
  const json::value second = json::parse(node.generation().text("body"));
  EXPECT_EQ(at(second, "/messages/1/content").as_string(), "hi");
  EXPECT_EQ(second.at("top_k").as_int64(), 3);
}

TEST_F(BenchTest, WhatCannotBeMeasuredIsToldBeforeAnythingIsAsked) {
  TestNode node({});
  const std::string missing = (folder_ / "missing" / "x").string();
  const std::vector<std::pair<std::vector<std::string>, int>> wrong = {
      {{}, 2},
      {{"--model", "a", "--concurrency", "0"}, 2},
      {{"--model", "a", "--dialect", "klingon"}, 2},
      {{"--model", "a", "--rate", "1", "--concurrency", "1"}, 2},
      {{"--model", "a", "--shared-prefix-tokens", "1"}, 2},
      {{"--model", "a", "--against", "http://h:1", "http://h:2"}, 2},
      {{"--model", "a", "--prompts", missing}, 1},
      {{"--model", "a", "--output", missing}, 1},
      {{"--model", "a", "--url", "ftp://x"}, 1},
      {{"compare", missing, missing}, 1},
      {{"compare", missing}, 2}};
  for (const auto& [words, status] : wrong) {
    const CommandRun done = run(words, node);
    EXPECT_EQ(done.status, status) << done.err;
    EXPECT_TRUE(done.err.starts_with("werk: ")) << done.err;
    EXPECT_EQ(done.out, "");
  }
  for (const std::string option : {"--url", "--against"}) {
    for (const std::string address : {"ftp://x", "http://h:x"}) {
      const CommandRun done = run({"--model", "a", option, address}, node);
      EXPECT_EQ(done.status, 1);
      EXPECT_TRUE(done.err.starts_with("werk: " + option + " ")) << done.err;
      EXPECT_NE(done.err.find(address), std::string::npos) << done.err;
    }
  }
  EXPECT_EQ(node.engines().count("spawned"), 0u);
  const CommandRun nobody =
      run_werk({"bench", "--model", "a"}, {"WERK_HOME=" + folder_.path().string()});
  EXPECT_EQ(nobody.status, 1);
  EXPECT_NE(nobody.err.find("werk serve"), std::string::npos) << nobody.err;
}

TEST_F(BenchTest, TwoFilesAreComparedWithAWarningWhereConditionsDiffer) {
  TestNode node({});
  EXPECT_EQ(run({"--model", "a", "--warmup", "--requests", "2", "--repeat", "2", "--output",
                 output("one.json")},
                node)
                .status,
            0);
  EXPECT_EQ(run({"--model", "a", "--warmup", "--requests", "2", "--repeat", "2", "--seed", "2",
                 "--output", output("two.json")},
                node)
                .status,
            0);
  const CommandRun done = run({"compare", output("one.json"), output("two.json")}, node);
  EXPECT_EQ(done.status, 0) << done.err;
  EXPECT_NE(done.out.find("differs: seed: 1 and 2"), std::string::npos) << done.out;
  EXPECT_NE(done.out.find("tokens/s"), std::string::npos) << done.out;
}

}  // namespace
}  // namespace werk::test
