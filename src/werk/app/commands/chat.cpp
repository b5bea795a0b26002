#include "werk/app/commands/chat.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <boost/json/array.hpp>
#include <boost/json/serialize.hpp>
#include <csignal>
#include <cstdio>

#include "werk/app/commands/ask.hpp"
#include "werk/app/commands/ask_answer.hpp"
#include "werk/app/commands/chat_input.hpp"
#include "werk/app/terminal.hpp"
#include "werk/base/text.hpp"

namespace werk::app {

namespace json = boost::json;

namespace {

constexpr std::string_view kHelp =
    "/bye           ends the chat (Ctrl-D too)\n"
    "/clear         forgets the conversation, not the instructions\n"
    "/system TEXT   instructions for the model; without TEXT it shows them\n"
    "/help          shows this\n"
    "Ctrl-C         stops an answer; what came of it stays in the conversation\n"
    "A backslash at the end of a line goes on in the next one; \"\"\" begins and ends several "
    "lines.\n"
    "A line whose first character is a blank is never a command.\n";
const std::array<std::string, 4> kCommands = {"/bye", "/clear", "/help", "/system"};

class Chat {
 public:
  Chat(const CommandLine& line, const Settings& settings, const std::filesystem::path& home)
      : line_(line), asked_(line, settings, home), system_(line.ask.system) {
    const auto flag = std::ranges::find_if(
        line.flags, [](const GivenFlag& given) { return given.flag == "--model"; });
    model_ = line.subject;
    if (model_.empty() && flag != line.flags.end()) model_ = flag->value;
  }

  int run() {
    Status begun = begin();
    if (!begun) return ask_failed(begun.error());
    while (!status_) {
      const LineReader::Read read = input_.next(prompt());
      if (read.kind == LineReader::Kind::line) {
        interrupted_ = false;
        if (auto turn = joiner_.add(read.text)) take(*turn, read.text);
        continue;
      }
      if (read.kind == LineReader::Kind::interrupted) {
        on_interrupt();
        continue;
      }
      if (read.kind == LineReader::Kind::failed) return ask_failed({ErrorCode::io, read.text});
      if (joiner_.is_open()) say(joiner_.take());
      if (interactive_) fmt::print("\n");
      if (!status_) status_ = 0;
    }
    return *status_;
  }

 private:
  Status begin() {
    if (model_.empty()) model_ = asked_.unnamed_model();
    asked_.set_model(model_);
    auto node = reach();
    if (!node) return pass_on(node);
    if (!model_.empty()) {
      Status known = check_model(NodeClient(*node), model_);
      if (!known) return known;
    }
    if (interactive_) {
      fmt::print(stderr, "{}{}; /help shows what there is, Ctrl-D ends\n",
                 model_.empty() ? "the node's default model" : model_,
                 asked_.is_own() ? "" : fmt::format(" at {}", node->url));
    }
    return {};
  }

  Result<NodeAddress> reach() {
    auto node = asked_.reach();
    // Between an answer and the next line Ctrl-C does nothing; whoever waits sees it.
    std::signal(SIGINT, SIG_IGN);
    return node;
  }

  std::string_view prompt() const {
    if (!interactive_) return {};
    return joiner_.is_open() ? ". " : "> ";
  }

  void on_interrupt() {
    if (!interactive_ || interrupted_) {
      status_ = kSignalStatus;
      if (interactive_) fmt::print("\n");
      return;
    }
    interrupted_ = true;
    joiner_ = {};
    fmt::print(stderr, "\n(Ctrl-C once more or Ctrl-D ends the chat)\n");
  }

  void take(const std::string& turn, const std::string& last_line) {
    if (trim(turn).empty()) return;
    // Only what was written in one line is a command.
    if (turn == last_line && turn.starts_with('/')) return obey(turn);
    say(turn);
  }

  void obey(const std::string& turn) {
    const std::string word = turn.substr(0, turn.find(' '));
    const std::string rest(trim(std::string_view(turn).substr(word.size())));
    if (word == "/bye" || word == "/exit" || word == "/quit") {
      status_ = 0;
    } else if (word == "/clear") {
      history_.clear();
      note("the conversation begins anew");
    } else if (word == "/help" || word == "/?") {
      fmt::print(stderr, "{}", kHelp);
    } else if (word == "/system" && rest.empty()) {
      note(system_.empty() ? std::string("no instructions are set") : shown_text(system_));
    } else if (word == "/system") {
      system_ = rest;
      note("these instructions hold from the next turn on");
    } else {
      const auto near = near_names(word, kCommands, 1);
      problem(fmt::format(
          "there is no {}{}; /help shows what there is, and with a blank before it "
          "the line goes to the model",
          shown_text(word), near.empty() ? "" : fmt::format("; did you mean {}?", near.front())));
    }
  }

  void say(const std::string& turn) {
    if (!is_valid_utf8(turn)) return problem("this is no UTF-8 text; models read text alone");
    history_.push_back({{"role", "user"}, {"content", turn}});
    Answered answered = answer();
    if (answered.reader_left) {
      status_ = 0;
      return;
    }
    const bool stopped = answered.problem && answered.problem->code == ErrorCode::cancelled;
    if ((answered.problem && !stopped) || answered.text.empty()) {
      history_.pop_back();
    } else {
      history_.push_back({{"role", "assistant"}, {"content", answered.text}});
    }
    if (stopped && !interactive_) status_ = kSignalStatus;
    if (stopped && interactive_) note(answered.text.empty() ? "stopped" : "stopped; it is kept");
    if (answered.problem && !stopped) problem(way_out(*answered.problem));
    if (!answered.problem) note_end(answered.facts);
  }

  // Asks again where the node has gone before it said anything.
  Answered answer() {
    constexpr int kTries = 5;
    Answered answered;
    for (int i = 0; i < kTries; ++i) {
      const auto node = reach();
      if (!node) return {{}, {}, node.error()};
      answered = show_answer(NodeClient(*node), model_, messages(), line_.ask);
      const bool again =
          answered.problem && answered.text.empty() && asked_.has_gone(*answered.problem);
      if (!again) break;
    }
    return answered;
  }

  std::string messages() const {
    json::array all;
    if (!system_.empty()) all.push_back({{"role", "system"}, {"content", system_}});
    all.insert(all.end(), history_.begin(), history_.end());
    return json::serialize(all);
  }

  std::string way_out(const Error& error) const {
    if (error.code == ErrorCode::context_length_exceeded && !history_.empty())
      return error.message + "; /clear begins a new conversation";
    if (model_.empty() && error.code == ErrorCode::invalid_request) return asked_.way_to_name();
    return error.message;
  }

  void note_end(const AnswerFacts& facts) const {
    if (facts.finish_reason != "length") return;
    if (line_.ask.max_tokens) {
      note(fmt::format("the answer ends at --max-tokens {}", *line_.ask.max_tokens));
    } else {
      fmt::print(stderr,
                 "werk: the answer ends where the context is full; /clear begins a new "
                 "conversation\n");
    }
  }

  // To the person; a pipe has none.
  void note(const std::string& text) const {
    if (interactive_) fmt::print(stderr, "({})\n", text);
  }

  // A person goes on, a pipe ends.
  void problem(const std::string& text) {
    fmt::print(stderr, "werk: {}\n", text);
    if (!interactive_) status_ = 1;
  }

  const CommandLine& line_;
  AskedNode asked_;
  std::string model_;
  std::string system_;
  json::array history_;
  LineReader input_;
  TurnJoiner joiner_;
  bool interactive_ = is_terminal(0) && is_terminal(1);
  bool interrupted_ = false;  // by the last thing that came
  std::optional<int> status_;
};

}  // namespace

int chat_command(const CommandLine& line, const Settings& settings,
                 const std::filesystem::path& home) {
  std::signal(SIGPIPE, SIG_IGN);
  return Chat(line, settings, home).run();
}

}  // namespace werk::app
