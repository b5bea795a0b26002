// Each fault that a node can cause (the rows of the table of clients' tries), met by Claude Code
// itself: what its user reads, its exit status and how often it tries. And whatever makes it try
// again, its first call has ended at the engine before the next is sent there.
#include <sys/resource.h>

#include <csignal>

#include "tests/e2e/claude_code.hpp"

namespace werk::test {
namespace {

namespace json = boost::json;

const std::vector<std::string> kShown = {"hi", "--output-format", "stream-json", "--verbose",
                                         "--include-partial-messages"};

// Told before each try but the first.
constexpr std::string_view kRetry = R"("subtype":"api_retry")";

class ClaudeCodeFault : public ClaudeCodeTest {
 protected:
  static void expect_says(const ClaudeRun& run, std::string_view text) {
    EXPECT_EQ(run.status, 1) << run.out << run.err;
    EXPECT_NE(run.out.find(text), std::string::npos) << "no " << text << " in\n" << run.out;
  }
  static void expect_answers(const ClaudeRun& run, std::string_view text) {
    EXPECT_EQ(run.status, 0) << run.out << run.err;
    EXPECT_EQ(run.out, std::string(text) + "\n") << run.err;
  }
  // How long it means to wait before its first retry.
  static int first_delay_ms(std::string_view out) {
    const std::string_view member = R"("retry_delay_ms":)";
    const std::size_t at = out.find(member);
    if (at == std::string_view::npos) return -1;
    return std::atoi(std::string(out.substr(at + member.size(), 9)).c_str());
  }
  static std::size_t occurrences(std::string_view text, std::string_view part) {
    std::size_t count = 0;
    for (std::size_t at = text.find(part); at != std::string_view::npos;
         at = text.find(part, at + 1)) {
      ++count;
    }
    return count;
  }
};

// ---- faults that no retry mends

TEST_F(ClaudeCodeFault, AWrongKeyIsToldAndTriedAsOftenAsTheClientTriesAnything) {
  TestNode node({.engine = engine_with(), .environment = {"WERK_API_KEY=secret"}});
  const ClaudeRun run = ClaudeCode(node.port()).run(kShown);
  EXPECT_EQ(run.status, 1) << run.err;
  EXPECT_EQ(run.answer(),
            "Failed to authenticate. API Error: 401 the key is not one of this node's");
  EXPECT_EQ(occurrences(run.out, kRetry), 2u) << run.out;
  EXPECT_EQ(occurrences(run.out, R"("error_status":401)"), 2u) << run.out;
  EXPECT_EQ(node.engines().count("spawned"), 0u);
}

TEST_F(ClaudeCodeFault, AnUnknownModelIsToldWithItsNameAfterTwoTries) {
  TestNode node({.engine = engine_with()});
  ClaudeCode claude(node.port(), {"ANTHROPIC_MODEL=claude-sonnet-4-5"});
  expect_says(claude.run({"hi"}), "There's an issue with the selected model (claude-sonnet-4-5)");
  EXPECT_EQ(calls(node, "status=404"), 2u) << node.process().log();
  EXPECT_EQ(node.engines().count("spawned"), 0u);
}

TEST_F(ClaudeCodeFault, APromptThatIsTooLongIsToldWithBothNumbersAfterOneTry) {
  const json::object error{{"code", 400},
                           {"type", "exceed_context_size_error"},
                           {"message", "too long"},
                           {"n_prompt_tokens", 20000},
                           {"n_ctx", 4096}};
  TestNode node({.engine = engine_with({{"reply", {{"status", 400}, {"error", error}}}})});
  const ClaudeRun run = ClaudeCode(node.port()).run({"hi"});
  expect_says(run, "Prompt is too long");
  expect_says(run, "20000 tokens (limit 4096)");
  EXPECT_EQ(calls(node, "status=400"), 1u);
  EXPECT_EQ(generations(node).size(), 1u);
}

// A 400 that it doesn't know it tries up to six times at once, each time without something that an
// older server might not know.
TEST_F(ClaudeCodeFault, AModelThatCanNeverRunIsToldAtOnceAndStartedOnce) {
  TestNode node({.engine = engine_with({{"start", "exit"},
                                        {"stderr",
                                         "0.00.006.434 E srv    load_model: failed to "
                                         "load model\n"}})});
  expect_says(ClaudeCode(node.port()).run({"hi"}), "API Error: 400 ");
  EXPECT_LE(calls(node, "status=400"), 6u) << node.process().log();
  EXPECT_EQ(node.engines().count("spawned"), 1u);
}

// ---- refusals that waiting helps against

TEST_F(ClaudeCodeFault, AFullLineIsToldAndWaitedForAsRetryAfterAsks) {
  // A thousand sockets are more than a shell's usual limit.
  rlimit files{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &files), 0);
  files.rlim_cur = files.rlim_max;
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &files), 0);
  TestNode node({.engine = engine_with({{"reply", {{"hold", true}}}})});
  std::vector<HttpCall> line;
  for (int i = 0; i < 1025; ++i) line.push_back(node.chat("a"));
  node.await_waiting(1024);
  ClaudeCode claude(node.port(), {"CLAUDE_CODE_MAX_RETRIES=1"});
  const ClaudeRun run = claude.run(kShown);
  EXPECT_EQ(run.status, 1) << run.err;
  EXPECT_NE(run.answer().find("Request rejected (429)"), std::string::npos) << run.answer();
  EXPECT_NE(run.answer().find("1024 calls already wait for this model"), std::string::npos);
  EXPECT_GE(first_delay_ms(run.out), 2000);
  EXPECT_EQ(calls(node, "status=429"), 2u);
  EXPECT_EQ(generations(node).size(), 1u) << "a refused call never reaches the engine";
}

TEST_F(ClaudeCodeFault, NoPlaceForAModelIsToldAndTheRetryIsServedOnceThereIsOne) {
  const json::object held{{"reply", {{"hold", true}}}};
  TestNode node({.models = {{"a"}, {"b"}},
                 .engine = engine_with({{"models", {{"models/b/", held}}}}),
                 .arguments = {"--max-resident", "1", "--capacity-wait", "0"}});
  HttpCall other = node.chat("b");
  const EngineEvent running = node.generation();
  ClaudeCode impatient(node.port(), {"CLAUDE_CODE_MAX_RETRIES=0"});
  expect_says(impatient.run({"hi"}), "API Error: 503 every place for a model");
  EXPECT_EQ(calls(node, "status=503"), 1u);

  ClaudeCode claude(node.port());
  const auto process = claude.start(kShown);
  const std::string line = process->next_line(kRetry);
  EXPECT_NE(line.find(R"("error_status":503)"), std::string::npos) << line;
  EXPECT_GE(first_delay_ms(line), 5000);
  node.engines().release(running.engine, running.request());
  EXPECT_EQ(other.status(), 200);
  const ClaudeRun run = ClaudeCode::end_of(*process);
  EXPECT_EQ(run.status, 0) << run.out;
  EXPECT_TRUE(run.answer().starts_with("tok0 tok1")) << run.out;
}

// ---- faults of the engine

TEST_F(ClaudeCodeFault, AnEngineThatFailsBeforeItsFirstWordIsTriedAgainAndThenTold) {
  TestNode node({.engine = engine_with({{"reply", {{"status", 500}}}})});
  expect_says(ClaudeCode(node.port()).run({"hi"}), "API Error: 502 the engine failed");
  EXPECT_EQ(calls(node, "status=502"), 3u);
  expect_one_at_a_time(node);
}

TEST_F(ClaudeCodeFault, AfterAnErrorEventItAsksOnceForAWholeAnswerAndShowsThatAlone) {
  const json::object error{{"after", 4}, {"how", "error"}};
  TestNode node({.engine = engine_with({{"replies", {{{"die", error}}, says("whole")}}})});
  expect_answers(ClaudeCode(node.port()).run({"hi"}), "whole");
  EXPECT_EQ(generations(node).size(), 2u);
  EXPECT_EQ(calls(node, "outcome=failed"), 1u);
  expect_one_at_a_time(node);
}

TEST_F(ClaudeCodeFault, AnEngineThatBreaksOffIsAnErrorEventToItAndNeverAWholeAnswer) {
  const json::object cut{{"after", 4}, {"how", "close"}};
  TestNode node({.engine = engine_with({{"replies", {{{"die", cut}}, says("whole")}}})});
  expect_answers(ClaudeCode(node.port()).run({"hi"}), "whole");
  EXPECT_EQ(generations(node).size(), 2u);
  expect_one_at_a_time(node);
}

TEST_F(ClaudeCodeFault, AnEngineThatDiesInMidStreamIsReplacedBeforeTheNextTry) {
  const json::object death{{"after", 4}, {"how", "kill"}};
  TestNode node({.engine = engine_with({{"replies", {{{"die", death}}}}})});
  ClaudeCode claude(node.port());
  const auto process = claude.start(kShown);
  const EngineEvent first = node.generation();
  node.engines().set_settings(engine_with({{"reply", says("by another engine")}}));
  const ClaudeRun run = ClaudeCode::end_of(*process);
  EXPECT_EQ(run.answer(), "by another engine") << run.out;
  EXPECT_NE(node.generation().engine, first.engine);
  expect_one_at_a_time(node);
}

TEST_F(ClaudeCodeFault, AnErrorThatStaysIsToldInTheNodesWords) {
  const json::object error{{"after", 4}, {"how", "error"}};
  TestNode node({.engine = engine_with({{"reply", {{"die", error}}}})});
  expect_says(ClaudeCode(node.port()).run({"hi"}), "the engine failed: Compute error.");
  // The client's own doing: how often it tries without streaming differs between runs.
  EXPECT_GE(generations(node).size(), 2u);
  EXPECT_LE(generations(node).size(), 4u);
  expect_one_at_a_time(node);
}

// ---- the node itself gone

TEST_F(ClaudeCodeFault, ANodeThatIsKilledInMidStreamAndComesBackAnswersTheNextTry) {
  TestNode node({.engine = engine_with({{"replies", {{{"gated", true}}}}})});
  const std::string port = std::to_string(node.port());
  ClaudeCode claude(node.port(), {"CLAUDE_CODE_MAX_RETRIES=8"});
  const auto process = claude.start(kShown);
  const EngineEvent first = node.generation();
  node.engines().step(first.engine, first.request(), 2);
  process->next_line("tok1");
  node.process().signal(SIGKILL);
  node.engines().expect_from(first.engine, "gone");
  node.engines().set_settings(engine_with({{"reply", says("after the cut")}}));
  node.start_again({"--port", port});
  const ClaudeRun run = ClaudeCode::end_of(*process);
  EXPECT_EQ(run.status, 0) << run.out << run.err;
  EXPECT_EQ(run.answer(), "after the cut") << run.out;
}

// ---- calls that the client gives up

TEST_F(ClaudeCodeFault, ACallThatWasGivenUpHasEndedAtTheEngineBeforeTheNextTryIsSent) {
  TestNode node({.engine = engine_with({{"replies", {{{"hold", true}}, says("later")}}}),
                 .arguments = {"--parallel", "4"}});
  ClaudeCode claude(node.port(), {"API_TIMEOUT_MS=1500"});
  expect_answers(claude.run({"hi"}), "later");
  const std::vector<EngineEvent> all = generations(node);
  ASSERT_EQ(all.size(), 2u);
  const EngineEvent closed = node.engines().expect("closed");
  EXPECT_EQ(closed.request(), all[0].request());
  EXPECT_LT(closed.number("at_us"), all[1].number("at_us"));
  expect_one_at_a_time(node);
  EXPECT_EQ(calls(node, "outcome=cancelled"), 1u);
}

TEST_F(ClaudeCodeFault, WhileTheEngineStillHoldsTheSlotOfAGivenUpCallTheNextTryWaits) {
  TestNode node({.engine = engine_with({{"busy_after_close", true},
                                        {"replies", {{{"hold", true}}, says("later")}}})});
  ClaudeCode claude(node.port(), {"API_TIMEOUT_MS=3000"});
  const auto process = claude.start({"hi"});
  const EngineEvent first = node.generation();
  node.engines().expect("closed");
  node.await_waiting(1);
  EXPECT_EQ(generations(node).size(), 1u);
  node.engines().release(first.engine, first.request());
  expect_answers(ClaudeCode::end_of(*process), "later");
  EXPECT_EQ(generations(node).size(), 2u);
  expect_one_at_a_time(node);
}

TEST_F(ClaudeCodeFault, AnInterruptedClientFreesItsSlot) {
  TestNode node({.engine = engine_with({{"replies", {{{"gated", true}}}}})});
  ClaudeCode claude(node.port());
  const auto process = claude.start(kShown);
  const EngineEvent first = node.generation();
  node.engines().step(first.engine, first.request(), 2);
  process->next_line("tok1");
  process->signal(SIGINT);
  EXPECT_EQ(node.engines().expect("closed").request(), first.request());
  process->wait_exit();
  EXPECT_TRUE(claude.run({"hi"}).out.starts_with("tok0 tok1"));
  expect_one_at_a_time(node);
}

}  // namespace
}  // namespace werk::test
