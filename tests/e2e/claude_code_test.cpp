// Claude Code itself in conversations with the real node over fake engines: its full form with
// tools and their results, and turn after turn what the engine is sent and what the person reads.
#include "tests/e2e/claude_code.hpp"

#include <fstream>

namespace werk::test {
namespace {

namespace json = boost::json;

constexpr std::string_view kNote = "hello from the note";
// Eight times eight of them, as PNG.
constexpr std::string_view kRedPixels =
    "iVBORw0KGgoAAAANSUhEUgAAAAgAAAAICAIAAABLbSncAAAAEklEQVR4nGP4z8CAFWEXHbQSACj/"
    "P8Fu7N9hAAAAAElFTkSu"
    "QmCC";
constexpr std::string_view kAttribution = "x-anthropic-billing-header";
const std::vector<std::string> kJson = {"--output-format", "json",
                                        "--dangerously-skip-permissions"};

json::object call(std::string_view id, std::string_view name, json::object input) {
  return {{"id", id}, {"name", name}, {"arguments", json::array{json::serialize(input)}}};
}

json::object reads(std::string_view id) { return call(id, "Read", {{"file_path", "note.txt"}}); }
json::object runs(std::string_view id, std::string_view command) {
  return call(id, "Bash", {{"command", command}, {"description", "Looks"}});
}

// The body that an engine was sent, in the pieces that matter to its cache: everything up to the
// end of the messages, and what follows them.
struct Sent {
  explicit Sent(const EngineEvent& generation) : body(generation.text("body")) {
    const std::size_t end = body.find(R"(],"tools":[)");
    EXPECT_NE(end, std::string::npos) << body.substr(0, 200);
    history = body.substr(0, end);
    tail = body.substr(end);
    messages = json::parse(body).at("messages").as_array();
  }
  std::string role(std::size_t i) const { return std::string(messages[i].at("role").as_string()); }
  // Of the messages from the end, 0 the last.
  std::string text_from_end(std::size_t i) const {
    return std::string(messages[messages.size() - 1 - i].at("content").as_string());
  }

  std::string body;
  std::string history;
  std::string tail;
  json::array messages;
};

class ClaudeCodeConversation : public ClaudeCodeTest {
 protected:
  static std::vector<Sent> sent(TestNode& node) {
    std::vector<Sent> all;
    for (const EngineEvent& generation : generations(node)) all.emplace_back(generation);
    return all;
  }
  // What the engine has read already it is sent again byte for byte, and more behind it.
  static void expect_growing_history(const std::vector<Sent>& all) {
    for (std::size_t i = 1; i < all.size(); ++i) {
      EXPECT_GT(all[i].messages.size(), all[i - 1].messages.size());
      EXPECT_TRUE(all[i].history.starts_with(all[i - 1].history + ","))
          << "generation " << i << " doesn't go on where the one before ended:\n"
          << all[i - 1].history << "\n"
          << all[i].history;
      EXPECT_EQ(all[i].tail, all[i - 1].tail) << "generation " << i;
    }
    for (const Sent& one : all) EXPECT_EQ(one.body.find(kAttribution), std::string::npos);
  }
  static std::vector<std::string> words(std::string prompt, const std::vector<std::string>& more) {
    std::vector<std::string> all = {std::move(prompt)};
    all.insert(all.end(), more.begin(), more.end());
    return all;
  }
};

TEST_F(ClaudeCodeConversation, EightTurnsWithToolsGrowByteForByteAndEachAnswerArrives) {
  const auto answer = [](int turn) { return "Answer " + std::to_string(turn) + ", Grüße 世界."; };
  const auto with_calls = [](json::array calls) -> json::object {
    return {{"reasoning", {"I must ", "look."}}, {"tool_calls", std::move(calls)}};
  };
  TestNode node(
      {.engine = engine_with(
           {{"replies",
             {says(answer(1)), with_calls({runs("call_1", "cat note.txt")}), says(answer(2)),
              says(answer(3)), with_calls({runs("call_2", "ls missing"), reads("call_3")}),
              says(answer(4)), says(answer(5)), with_calls({reads("call_4")}), says(answer(6)),
              says(answer(7)), says(answer(8))}}})});
  ClaudeCode claude(node.port());
  std::ofstream(claude.folder() / "note.txt") << kNote << "\n";
  for (int turn = 1; turn <= 8; ++turn) {
    std::vector<std::string> all = words("This is turn " + std::to_string(turn), kJson);
    if (turn > 1) all.emplace_back("--continue");
    const ClaudeRun run = claude.run(all);
    EXPECT_EQ(run.status, 0) << run.out << run.err;
    EXPECT_EQ(run.answer(), answer(turn)) << run.out;
    EXPECT_FALSE(run.result().at("is_error").as_bool()) << run.out;
  }

  const std::vector<Sent> all = sent(node);
  ASSERT_EQ(all.size(), 11u);
  expect_growing_history(all);
  expect_one_at_a_time(node);
  EXPECT_EQ(all.front().role(0), "system");
  EXPECT_NE(json::serialize(all.back().messages).find("This is turn 1"), std::string::npos);
  EXPECT_EQ(all.back().text_from_end(0), "This is turn 8");
  EXPECT_EQ(all.back().text_from_end(1), answer(7));
  // The results of one call, and of two of which one went wrong.
  EXPECT_EQ(all[2].role(all[2].messages.size() - 1), "tool");
  EXPECT_EQ(all[2].text_from_end(0), kNote);
  const std::string two = all[5].text_from_end(0) + all[5].text_from_end(1);
  EXPECT_NE(two.find("Error: Exit code 2"), std::string::npos) << two;
  EXPECT_NE(two.find(kNote), std::string::npos) << two;
  EXPECT_NE(all[8].text_from_end(0).find(kNote), std::string::npos);
}

TEST_F(ClaudeCodeConversation, EightTurnsOfOneProcessGrowByteForByteToo) {
  TestNode node({.engine = engine_with()});
  ClaudeCode claude(node.port());
  const auto process =
      claude.start({"--input-format", "stream-json", "--output-format", "stream-json", "--verbose"},
                   ClientInput::kept);
  for (int turn = 1; turn <= 8; ++turn) {
    const json::object message{{"role", "user"}, {"content", "turn " + std::to_string(turn)}};
    process->write(json::serialize(json::object{{"type", "user"}, {"message", message}}) + "\n");
    const std::string line = process->next_line(R"("type":"result")");
    EXPECT_NE(line.find(R"("result":"tok0 tok1)"), std::string::npos) << line;
  }
  EXPECT_EQ(process->wait_exit(), 0) << process->err();
  const std::vector<Sent> all = sent(node);
  EXPECT_EQ(all.size(), 8u);
  expect_growing_history(all);
}

// The client sends what its tool has read again with each turn that follows.
TEST_F(ClaudeCodeConversation, AnImageAndADocumentThatAToolReadsAreToldTheModelAndItGoesOn) {
  const auto read = [](std::string_view id, std::string_view file) -> json::object {
    return {{"tool_calls", json::array{call(id, "Read", {{"file_path", file}})}}};
  };
  TestNode node({.engine = engine_with(
                     {{"replies",
                       {read("call_1", "red.png"), says("I see none."), read("call_2", "a.pdf"),
                        says("Nor that."), says("Still here.")}}})});
  ClaudeCode claude(node.port());
  const std::string decode = "printf %s " + std::string(kRedPixels) + " | base64 -d >";
  ASSERT_EQ(std::system((decode + (claude.folder() / "red.png").string()).c_str()), 0);
  std::ofstream(claude.folder() / "a.pdf") << "%PDF-1.4\n%%EOF\n";
  const std::vector<std::string> answers = {"I see none.", "Nor that.", "Still here."};
  for (std::size_t turn = 0; turn < answers.size(); ++turn) {
    std::vector<std::string> all = words("look", kJson);
    if (turn > 0) all.emplace_back("--continue");
    const ClaudeRun run = claude.run(all);
    EXPECT_EQ(run.status, 0) << run.out << run.err;
    EXPECT_EQ(run.answer(), answers[turn]);
  }
  const std::vector<Sent> all = sent(node);
  ASSERT_EQ(all.size(), 5u);
  EXPECT_EQ(all[1].text_from_end(0), "[an image, which this model can't see]");
  EXPECT_NE(all[3].text_from_end(0).find("[content of a kind that can't be read here]"),
            std::string::npos)
      << all[3].text_from_end(0);
  expect_growing_history(all);
}

TEST_F(ClaudeCodeConversation, TwoConversationsDifferInTheirPromptsAlone) {
  TestNode node({.engine = engine_with()});
  ClaudeCode claude(node.port());
  EXPECT_EQ(claude.run({"say hi"}).status, 0);
  EXPECT_EQ(claude.run({"what now?"}).status, 0);
  std::vector<Sent> all = sent(node);
  ASSERT_EQ(all.size(), 2u);
  const std::size_t prompt = all[0].history.find("say hi");
  ASSERT_NE(prompt, std::string::npos);
  all[0].history.replace(prompt, 6, "what now?");
  EXPECT_EQ(all[0].history, all[1].history);
}

TEST_F(ClaudeCodeConversation, WithoutTheEditTheAttributionLineReachesTheEngineAndParts) {
  TestNode node({.engine = engine_with(), .arguments = {"--prompt-edits", "off"}});
  ClaudeCode claude(node.port());
  EXPECT_EQ(claude.run({"say hi"}).status, 0);
  EXPECT_EQ(claude.run({"what now?"}).status, 0);
  const std::vector<Sent> all = sent(node);
  ASSERT_EQ(all.size(), 2u);
  const auto parting = std::ranges::mismatch(all[0].history, all[1].history).in1;
  const auto at = static_cast<std::size_t>(parting - all[0].history.begin());
  const std::size_t line = all[0].history.find(kAttribution);
  EXPECT_LT(line, at);
  EXPECT_LT(at, line + 100) << "the conversations share no more than the beginning of the line";
}

TEST_F(ClaudeCodeConversation, ALongLoadIsBridgedByPingsAndAnswered) {
  TestNode node(
      {.engine = engine_with({{"start", "hold"}}), .arguments = {"--early-headers", "1ms"}});
  ClaudeCode claude(node.port());
  const auto process = claude.start({"hi"});
  const int engine = node.engines().expect("spawned").engine;
  node.await_waiting(1);
  node.engines().ready(engine);
  const ClaudeRun run = ClaudeCode::end_of(*process);
  EXPECT_EQ(run.status, 0) << run.err;
  EXPECT_TRUE(run.out.starts_with("tok0 tok1")) << run.out;
  EXPECT_EQ(generations(node).size(), 1u);
}

TEST_F(ClaudeCodeConversation, LaunchStartsItOnANodeOfItsOwnWithOneLine) {
  const TemporaryFolder home;
  TestModel coder{"coder", {}};
  coder.options.context_tokens = 32768;
  coder.options.chat_template = TinyTemplate::with_tools;
  install_tiny_models(home.path(), {coder});
  EngineControl engines(engine_with({{"n_ctx_train", 32768}}));
  std::vector<std::string> environment = engines.environment();
  const std::filesystem::path client = ClaudeCode::program();
  for (const std::string& entry :
       {"WERK_LLAMA_SERVER=" + EngineControl::program(), "WERK_HOME=" + home.path().string(),
        "HOME=" + home.path().string(), "PATH=" + client.parent_path().string() + ":/usr/bin:/bin"})
    environment.push_back(entry);
  PipedProcess launch({NodeProcess::program(),
                       {"launch", "claude", "--", "-p", "hi", "--output-format", "json"},
                       std::move(environment),
                       home.path()});
  const ClaudeRun run = ClaudeCode::end_of(launch);
  EXPECT_EQ(run.status, 0) << run.err;
  EXPECT_TRUE(run.answer().starts_with("tok0 tok1")) << run.out << run.err;
  // What it is told of the context, it goes by.
  EXPECT_NE(run.out.find(R"("contextWindow":32768)"), std::string::npos) << run.out;
  EXPECT_EQ(engines.count("spawned"), 1u);
  EXPECT_TRUE(engines.none_living_within(std::chrono::seconds(10)));
}

}  // namespace
}  // namespace werk::test
