// ClaudeCode: the real client without its terminal, as tests/e2e/sdk/prepare_claude_code installed
// it in the folder that WERK_TEST_CLAUDE_CODE names. Each has a home and a working folder of its
// own, so several runs of one are one person's. It gets no variable of the test's environment and
// is told to speak with the node alone. Owned by one test; blocking, with PipedProcess's watchdog.
#pragma once

#include <gtest/gtest.h>

#include <boost/json.hpp>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "tests/e2e/test_node.hpp"
#include "tests/support/piped_process.hpp"
#include "tests/support/temporary_folder.hpp"

namespace werk::test {

struct ClaudeRun {
  int status = 0;
  std::string out;
  std::string err;

  // What it printed last as JSON (`--output-format json` or `stream-json`): its account of the run.
  boost::json::object result() const;
  // The answer as a person sees it, from result().
  std::string answer() const;
};

// Whether its standard input stays open; it waits some seconds for what may come from there.
enum class ClientInput : std::uint8_t { none, kept };

class ClaudeCode {
 public:
  // The installed program; empty where there is none, and why tests are skipped then.
  static std::string program();
  static constexpr const char* kMissing =
      "Claude Code is not prepared (tests/e2e/sdk/prepare_claude_code)";

  // Asks for the model `a`. Variables that stand here count before those that every run gets.
  explicit ClaudeCode(std::uint16_t port, std::vector<std::string> variables = {})
      : port_(port), variables_(std::move(variables)) {}

  // Runs `claude -p` with these words to its end.
  ClaudeRun run(std::vector<std::string> words);
  std::unique_ptr<PipedProcess> start(std::vector<std::string> words,
                                      ClientInput input = ClientInput::none);
  static ClaudeRun end_of(PipedProcess& process);

  // Where it works: an empty folder.
  const std::filesystem::path& folder() const { return folder_.path(); }

 private:
  std::vector<std::string> environment() const;

  std::uint16_t port_;
  std::vector<std::string> variables_;
  TemporaryFolder home_;
  TemporaryFolder folder_;
};

// Without the client these tests are skipped, with the reason.
class ClaudeCodeTest : public ::testing::Test {
 protected:
  void SetUp() override;

  // What fake engines are told at their start: a template with a place for tools, and these
  // members.
  static boost::json::object engine_with(boost::json::object more = {});
  // A reply of such an engine.
  static boost::json::object says(std::string_view text);
  // Every generation that was started at the engines so far, in that order.
  static std::vector<EngineEvent> generations(TestNode& node);
  // Each generation was started when none was running any more, whoever had given it up.
  static void expect_one_at_a_time(TestNode& node);
  // How many calls to the Messages route ended so, by the node's own log.
  static std::size_t calls(TestNode& node, std::string_view words);
};

}  // namespace werk::test
