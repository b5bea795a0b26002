#include "werk/app/commands/ask.hpp"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <boost/json/array.hpp>
#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>

#include "werk/app/commands/ask_answer.hpp"
#include "werk/app/terminal.hpp"
#include "werk/base/text.hpp"

namespace werk::app {

namespace json = boost::json;

namespace {

constexpr std::size_t kInputBytesMax = std::size_t{64} << 20;
constexpr std::string_view kFromInput = "-";

// Whether something is given to us: not a terminal and not /dev/null.
bool has_input() {
  struct stat facts {};
  if (::fstat(STDIN_FILENO, &facts) != 0) return false;
  return S_ISFIFO(facts.st_mode) || S_ISREG(facts.st_mode) || S_ISSOCK(facts.st_mode);
}

Result<std::string> read_input() {
  std::string text;
  std::array<char, 65536> buffer;
  while (true) {
    const ssize_t count = ::read(STDIN_FILENO, buffer.data(), buffer.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) {
      return fail(ErrorCode::io,
                  fmt::format("cannot read standard input: {}", std::strerror(errno)));
    }
    if (count == 0) break;
    text.append(buffer.data(), static_cast<std::size_t>(count));
    if (text.size() > kInputBytesMax) {
      return fail(ErrorCode::payload_too_large,
                  fmt::format("standard input has more than {}; no model reads so much at once",
                              readable_bytes(kInputBytesMax)));
    }
  }
  while (text.ends_with('\n') || text.ends_with('\r')) text.pop_back();
  return text;
}

struct Words {
  std::string model;   // empty: not named
  std::string prompt;  // empty: none
  bool wants_input = false;
};

// A word alone is the model, unless it has a blank in it.

Words sort_words(const CommandLine& line) {
  Words words;
  std::vector<std::string> rest = line.words;
  const auto flag = std::ranges::find_if(
      line.flags, [](const GivenFlag& given) { return given.flag == "--model"; });
  words.wants_input = has_input();
  if (std::erase(rest, kFromInput) > 0) words.wants_input = true;
  if (flag != line.flags.end()) {
    words.model = flag->value;
  } else if (rest.size() == 1 && rest.front().find_first_of(" \n\t") == std::string::npos) {
    words.model = rest.front();
    rest.clear();
  } else if (rest.size() > 1) {
    words.model = rest.front();
    rest.erase(rest.begin());
  }
  words.prompt = fmt::format("{}", fmt::join(rest, " "));
  return words;
}

// What is asked: the words, then the input.
Result<std::string> whole_prompt(const Words& words) {
  std::string prompt = words.prompt;
  if (words.wants_input) {
    auto input = read_input();
    if (!input) return pass_on(input);
    if (!prompt.empty() && !input->empty()) prompt += "\n\n";
    prompt += *input;
  }
  if (!is_valid_utf8(prompt))
    return fail(ErrorCode::unsupported, "the prompt is not UTF-8 text; models read text alone");
  return prompt;
}

int no_prompt(const Words& words) {
  const std::string model = words.model.empty() ? "MODEL" : words.model;
  fmt::print(stderr,
             "werk: there is nothing to ask; `werk run {0} \"...\"` asks one question (standard "
             "input is read too), `werk chat {0}` talks\n",
             model);
  return kUsageStatus;
}

std::string messages_of(const std::string& system, const std::string& prompt) {
  json::array messages;
  if (!system.empty()) messages.push_back({{"role", "system"}, {"content", system}});
  messages.push_back({{"role", "user"}, {"content", prompt}});
  return json::serialize(messages);
}

int print_out(std::string_view text) {
  const bool written =
      std::fwrite(text.data(), 1, text.size(), stdout) == text.size() && std::fflush(stdout) == 0;
  if (written || errno == EPIPE) return 0;
  return ask_failed(
      {ErrorCode::io, fmt::format("cannot write the answer: {}", std::strerror(errno))});
}

// One try. The failure, if there is one and nothing was shown before it, is left to the caller.
using Tried = std::optional<Error>;

struct Question {
  std::string model;
  std::string messages;  // JSON
  const CommandLine& line;
};

Tried show_whole(const NodeClient& node, const Question& question, int& status) {
  NodeRequest request;
  request.method = "POST";
  request.target = "/v1/chat/completions";
  request.body = question_body(question.model, question.messages, question.line.ask);
  const auto answer = node.ask(request);
  if (!answer) return answer.error();
  status = print_out(*answer + "\n");
  return std::nullopt;
}

Tried show_streamed(const NodeClient& node, const Question& question, int& status) {
  const AskOptions& options = question.line.ask;
  const Answered answered = show_answer(node, question.model, question.messages, options);
  // Whoever reads only the beginning (`| head`) has what it wanted.
  if (answered.reader_left) return std::nullopt;
  if (answered.problem && answered.text.empty()) return answered.problem;
  if (answered.problem) {
    status = ask_failed(*answered.problem);
  } else if (answered.facts.finish_reason == "length") {
    fmt::print(stderr, "werk: the answer ends at its limit{}\n",
               options.max_tokens ? fmt::format(" (--max-tokens {})", *options.max_tokens)
                                  : std::string(" (the model's context is full)"));
  }
  return std::nullopt;
}

int ask(AskedNode& asked, const Question& question) {
  constexpr int kTries = 5;
  for (int i = 1;; ++i) {
    const auto address = asked.reach();
    if (!address) return ask_failed(address.error());
    int status = 0;
    const bool whole = question.line.json == Json::yes;
    const NodeClient node(*address);
    Tried problem =
        whole ? show_whole(node, question, status) : show_streamed(node, question, status);
    if (!problem) return status;
    if (i < kTries && asked.has_gone(*problem)) continue;
    const bool unnamed = question.model.empty() && problem->code == ErrorCode::invalid_request;
    if (unnamed) problem->message = asked.way_to_name();
    return ask_failed(*problem);
  }
}

}  // namespace

int ask_failed(const Error& error) {
  if (error.code == ErrorCode::cancelled) return kSignalStatus;
  return failed(error);
}

Status check_model(const NodeClient& node, const std::string& name) {
  NodeRequest request;
  request.target = "/v1/models/" + path_segment(name);
  auto found = node.ask(request);
  if (!found) return pass_on(found);
  return {};
}

int ask_command(const CommandLine& line, const Settings& settings,
                const std::filesystem::path& home) {
  std::signal(SIGPIPE, SIG_IGN);
  Words words = sort_words(line);
  const auto prompt = whole_prompt(words);
  if (!prompt) return ask_failed(prompt.error());
  if (prompt->empty()) return no_prompt(words);
  AskedNode asked(line, settings, home);
  if (words.model.empty()) words.model = asked.unnamed_model();
  asked.set_model(words.model);
  return ask(asked, {words.model, messages_of(line.ask.system, *prompt), line});
}

}  // namespace werk::app
