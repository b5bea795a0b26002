#include "tests/e2e/claude_code.hpp"

#include <cstdlib>

namespace werk::test {

namespace json = boost::json;

json::object ClaudeRun::result() const {
  const std::size_t end = out.find_last_not_of('\n');
  if (end == std::string::npos) return {};
  const std::size_t begin = out.rfind('\n', end) + 1;
  boost::system::error_code error;
  const json::value value = json::parse(out.substr(begin, end + 1 - begin), error);
  return !error && value.is_object() ? value.get_object() : json::object{};
}

std::string ClaudeRun::answer() const {
  const json::object all = result();
  const json::value* text = all.if_contains("result");
  return text != nullptr && text->is_string() ? std::string(text->get_string()) : "";
}

std::string ClaudeCode::program() {
  const char* folder = std::getenv("WERK_TEST_CLAUDE_CODE");
  if (folder == nullptr) return {};
  const std::filesystem::path prepared = folder;
  std::error_code error;
  if (!std::filesystem::exists(prepared / "ready", error)) return {};
  return (prepared / "claude").string();
}

std::vector<std::string> ClaudeCode::environment() const {
  std::vector<std::string> all = {
      "PATH=/usr/local/bin:/usr/bin:/bin",
      "HOME=" + home_.path().string(),
      "TMPDIR=" + home_.path().string(),
      "LANG=C.UTF-8",
      "ANTHROPIC_BASE_URL=http://127.0.0.1:" + std::to_string(port_),
      "ANTHROPIC_API_KEY=any",
      "ANTHROPIC_MODEL=a",
      "DISABLE_TELEMETRY=1",
      "DISABLE_ERROR_REPORTING=1",
      "DISABLE_AUTOUPDATER=1",
      "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1",
      "CLAUDE_CODE_MAX_RETRIES=2",
      "IS_SANDBOX=1",  // so that it runs commands without asking, also as root
  };
  for (const std::string& variable : variables_) {
    const std::string name = variable.substr(0, variable.find('=') + 1);
    std::erase_if(all, [&](const std::string& entry) { return entry.starts_with(name); });
    all.push_back(variable);
  }
  return all;
}

std::unique_ptr<PipedProcess> ClaudeCode::start(std::vector<std::string> words, ClientInput input) {
  words.insert(words.begin(), "-p");
  auto process = std::make_unique<PipedProcess>(
      PipedProcess::Settings{program(), std::move(words), environment(), folder_.path()});
  if (input == ClientInput::none) process->close_input();
  return process;
}

ClaudeRun ClaudeCode::run(std::vector<std::string> words) {
  return end_of(*start(std::move(words)));
}

ClaudeRun ClaudeCode::end_of(PipedProcess& process) {
  ClaudeRun run;
  run.status = process.wait_exit();
  run.out = process.out();
  run.err = process.err();
  return run;
}

void ClaudeCodeTest::SetUp() {
  if (ClaudeCode::program().empty()) GTEST_SKIP() << ClaudeCode::kMissing;
}

json::object ClaudeCodeTest::engine_with(json::object more) {
  json::object caps{{"supports_tools", true}, {"supports_tool_calls", true}};
  more["props"] = json::object{{"chat_template_caps", std::move(caps)}};
  return more;
}

json::object ClaudeCodeTest::says(std::string_view text) {
  return {{"content", json::array{text}}};
}

std::vector<EngineEvent> ClaudeCodeTest::generations(TestNode& node) {
  node.generations();  // everything that a living engine has read is told by then
  std::vector<EngineEvent> found = node.engines().all("request");
  std::erase_if(found,
                [](const EngineEvent& event) { return !event.all.at("generation").as_bool(); });
  return found;
}

void ClaudeCodeTest::expect_one_at_a_time(TestNode& node) {
  for (const EngineEvent& generation : generations(node)) {
    EXPECT_EQ(generation.number("open"), 1u) << "a call was sent beside one that still ran";
  }
}

std::size_t ClaudeCodeTest::calls(TestNode& node, std::string_view words) {
  // The log is written behind the calls, in their order: once it has told of this one it is whole.
  const std::string mark = "mark-" + std::to_string(node.process().log().size());
  HttpCall last = node.chat(mark);
  EXPECT_EQ(last.status(), 404);
  node.process().wait_for_line("model=" + mark);
  std::size_t count = 0;
  const std::string log = node.process().log();
  for (std::size_t at = log.find(" route=/v1/messages "); at != std::string::npos;
       at = log.find(" route=/v1/messages ", at + 1)) {
    const std::string line = log.substr(at, log.find('\n', at) - at);
    if (line.find(words) != std::string::npos) ++count;
  }
  return count;
}

}  // namespace werk::test
