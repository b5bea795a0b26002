// `werk chat` through a pipe and at a terminal.
#include <gtest/gtest.h>

#include <csignal>

#include "tests/e2e/command_home.hpp"
#include "tests/support/http_call.hpp"

namespace werk::test {
namespace {

namespace json = boost::json;

constexpr std::string_view kCtrlC = "\x03";
constexpr std::string_view kCtrlD = "\x04";

class ChatTest : public CommandHome {
 protected:
  explicit ChatTest(json::object engine = {{"reply", {{"tokens", 2}}}})
      : CommandHome("chat", std::move(engine)) {}

  // "user: hi | assistant: tok0 "
  std::string conversation_asked() {
    std::string all;
    const json::object body = asked();
    for (const json::value& message : body.at("messages").as_array()) {
      if (!all.empty()) all += " | ";
      all.append(message.at("role").as_string()).append(": ");
      all.append(message.at("content").as_string());
    }
    return all;
  }
};

TEST_F(ChatTest, EachLineOfAPipeIsATurnAndTheHistoryGoesWithIt) {
  install({"a"});
  const CommandRun done = run({"a", "--system", "Be brief."}, "hi\nmore?\n", Around::pipes);
  EXPECT_EQ(done.status, 0);
  EXPECT_EQ(done.out, "tok0 tok1 \ntok0 tok1 \n");
  EXPECT_EQ(done.err, "");
  EXPECT_EQ(conversation_asked(), "system: Be brief. | user: hi");
  EXPECT_EQ(conversation_asked(),
            "system: Be brief. | user: hi | assistant: tok0 tok1  | user: more?");
  EXPECT_EQ(engines_.count("spawned"), 1u);
  expect_nothing_left();
}

TEST_F(ChatTest, BesideARunningNodeThereIsNoSecondProcessOfItsModel) {
  install({"a"});
  NodeProcess node({home_.path(), {}, environment()});
  node.port();
  EXPECT_EQ(run({"a"}, "hi\nhi\n", Around::pipes).status, 0);
  EXPECT_EQ(run({}, "hi\n", Around::pipes).status, 0) << "the only model needs no name";
  EXPECT_EQ(spawned(), 1u);
  EXPECT_EQ(HttpCall(node.port(), "GET", "/health").status(), 200);
}

TEST_F(ChatTest, CommandsChangeTheConversation) {
  install({"a"});
  const CommandRun done = run({"a"},
                              "one\n/clear\ntwo\n/system Be kind.\nthree\n\n"
                              "\"\"\"\na\n/bye\n\"\"\"\nx\\\ny\n /etc is what?\n/bye\nnever\n",
                              Around::pipes);
  EXPECT_EQ(done.status, 0) << done.err;
  const std::string said = " | assistant: tok0 tok1  | user: ";
  EXPECT_EQ(conversation_asked(), "user: one");
  EXPECT_EQ(conversation_asked(), "user: two");
  std::string all = "system: Be kind. | user: two" + said + "three";
  EXPECT_EQ(conversation_asked(), all);
  EXPECT_EQ(conversation_asked(), all += said + "a\n/bye");
  EXPECT_EQ(conversation_asked(), all += said + "x\ny");
  EXPECT_EQ(conversation_asked(), all += said + " /etc is what?");
}

TEST_F(ChatTest, WhatCantBeAskedEndsAPipeWithOneLine) {
  install({"coder"});
  const CommandRun unknown = run({"codr"}, "hi\n", Around::pipes);
  EXPECT_EQ(unknown.status, 1);
  expect_has(unknown.err, "did you mean coder?");
  expect_one_line(unknown.err);
  EXPECT_EQ(engines_.count("spawned"), 0u);
  const CommandRun command = run({"coder"}, "/claer\nhi\n", Around::pipes);
  EXPECT_EQ(command.status, 1);
  expect_has(command.err, "did you mean /clear?");
  expect_one_line(command.err);
  expect_nothing_left();
}

TEST_F(ChatTest, AtThePromptCtrlCHintsAndASecondOneEnds) {
  install({"a"});
  CommandProcess chat(settings({"a"}, Around::terminal));
  chat.wait_for("> ");
  chat.type("half a li");
  chat.type(kCtrlC);
  chat.wait_for("(Ctrl-C once more or Ctrl-D ends the chat)");
  chat.wait_for("> ");
  chat.type("hi\n");
  chat.wait_for("tok0 tok1 \r\n> ");
  EXPECT_EQ(conversation_asked(), "user: hi") << "the begun line is gone";
  chat.type(kCtrlC);
  chat.wait_for("once more");
  chat.wait_for("> ");
  chat.type(kCtrlC);
  EXPECT_EQ(chat.wait_exit(), 130);
  expect_nothing_left();
}

TEST_F(ChatTest, CtrlDEndsItAndLeavesNothingBehind) {
  install({"a"});
  CommandProcess chat(settings({"a"}, Around::terminal));
  chat.wait_for("> ");
  chat.type("hi\n");
  chat.wait_for("tok0 tok1 \r\n> ");
  chat.type(kCtrlD);
  EXPECT_EQ(chat.wait_exit(), 0);
  expect_nothing_left();
}

TEST_F(ChatTest, ANodeThatEndsBetweenTwoTurnsIsReplacedByOneOfItsOwn) {
  install({"a"});
  NodeProcess node({home_.path(), {}, environment()});
  node.port();
  CommandProcess chat(settings({"a"}, Around::terminal));
  chat.wait_for("> ");
  chat.type("hi\n");
  chat.wait_for("tok0 tok1 \r\n> ");
  node.signal(SIGTERM);
  EXPECT_EQ(node.wait_exit(), 0);
  chat.type("more?\n");
  chat.wait_for("tok0 tok1 \r\n> ");
  conversation_asked();
  EXPECT_EQ(conversation_asked(), "user: hi | assistant: tok0 tok1  | user: more?");
  // Ctrl-C still does what it did.
  chat.type(kCtrlC);
  chat.wait_for("once more");
  chat.type("/bye\n");
  EXPECT_EQ(chat.wait_exit(), 0);
  expect_nothing_left();
}

class HeldChatTest : public ChatTest {
 protected:
  HeldChatTest()
      : ChatTest({{"reply", {{"tokens", 2}}},
                  {"replies", {{{"tokens", 1000}, {"hold_after", 4}}, {{"hold", true}}}}}) {}
};

TEST_F(HeldChatTest, CtrlCStopsAnAnswerAndWhatCameStaysInTheConversation) {
  install({"a"});
  CommandProcess chat(settings({"a"}, Around::terminal));
  chat.wait_for("> ");
  chat.type("hi\n");
  chat.wait_for("tok0 ");
  chat.type(kCtrlC);
  chat.wait_for("> ");
  EXPECT_EQ(conversation_asked(), "user: hi");
  engines_.expect("closed");
  // Nothing came of the second: neither it nor its question stays.
  chat.type("lost\n");
  EXPECT_EQ(conversation_asked(), "user: hi | assistant: tok0  | user: lost");
  chat.type(kCtrlC);
  chat.wait_for("(stopped)");
  chat.wait_for("> ");
  chat.type("go on\n");
  chat.wait_for("tok0 tok1 ");
  EXPECT_EQ(conversation_asked(), "user: hi | assistant: tok0  | user: go on");
  chat.type("/bye\n");
  EXPECT_EQ(chat.wait_exit(), 0);
  expect_nothing_left();
}

TEST_F(HeldChatTest, AnEngineThatDiesInMidAnswerIsToldAndTheChatGoesOn) {
  install({"a"});
  CommandProcess chat(settings({"a"}, Around::terminal));
  chat.wait_for("> ");
  chat.type("hi\n");
  chat.wait_for("tok0 ");
  engines_.send(0, {{"do", "kill_self"}});
  chat.wait_for("SIGKILL");
  chat.wait_for("> ");
  chat.type("/bye\n");
  EXPECT_EQ(chat.wait_exit(), 0);
  expect_nothing_left();
}

TEST_F(HeldChatTest, KilledOutrightItLeavesNothingBehind) {
  install({"a"});
  CommandProcess chat(settings({"a"}, Around::terminal));
  chat.wait_for("> ");
  chat.type("hi\n");
  chat.wait_for("tok0 ");
  chat.signal(SIGKILL);
  EXPECT_EQ(chat.wait_exit(), 128 + SIGKILL);
  EXPECT_TRUE(engines_.none_living_within(std::chrono::seconds(10)));
}

class FullChatTest : public ChatTest {
 protected:
  FullChatTest()
      : ChatTest({{"reply", {{"tokens", 2}}},
                  {"replies",
                   {json::object(),
                    {{"status", 400},
                     {"error",
                      {{"type", "exceed_context_size_error"},
                       {"message", "too long"},
                       {"n_prompt_tokens", 9000},
                       {"n_ctx", 4096}}}}}}}) {}
};

TEST_F(FullChatTest, AnOverflowNamesTheWayOut) {
  install({"a"});
  CommandProcess chat(settings({"a"}, Around::terminal));
  chat.wait_for("> ");
  chat.type("hi\n");
  chat.wait_for("tok0 tok1 \r\n> ");
  chat.type("too much\n");
  chat.wait_for("9000");
  chat.wait_for("/clear begins a new conversation");
  chat.wait_for("> ");
  chat.type("/clear\n");
  chat.type("short\n");
  chat.wait_for("tok0 tok1 ");
  conversation_asked();
  conversation_asked();
  EXPECT_EQ(conversation_asked(), "user: short");
}

}  // namespace
}  // namespace werk::test
