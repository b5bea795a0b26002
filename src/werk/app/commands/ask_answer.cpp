#include "werk/app/commands/ask_answer.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <boost/json/object.hpp>
#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>
#include <cerrno>
#include <cstdio>
#include <cstring>

#include "werk/app/terminal.hpp"

namespace werk::app {

using namespace std::chrono_literals;
using Time = std::chrono::steady_clock;

namespace json = boost::json;

namespace {

constexpr std::size_t kAnswerBytesMax = std::size_t{64} << 20;
constexpr auto kPatience = 1s;  // what takes longer is told
constexpr std::string_view kDim = "\033[2m";
constexpr std::string_view kPlain = "\033[0m";

double seconds(Time::duration time) { return std::chrono::duration<double>(time).count(); }

// Whether the node has the model ready; asked only to say what is waited for. Fails only after a
// signal.
Result<bool> is_loaded(const NodeClient& node, const std::string& model) {
  NodeRequest request;
  request.target = "/werk/v1/observability";
  request.silence_max = 5s;
  auto text = node.ask(request);
  if (!text && text.error().code == ErrorCode::cancelled) return pass_on(text);
  if (!text) return true;
  boost::system::error_code error;
  const json::value page = json::parse(*text, error);
  const json::value* runtimes = error ? nullptr : page.find_pointer("/runtimes", error);
  if (runtimes == nullptr || !runtimes->is_array()) return true;
  for (const json::value& runtime : runtimes->get_array()) {
    const json::value* name = runtime.find_pointer("/model", error);
    const json::value* state = runtime.find_pointer("/state", error);
    if (name == nullptr || state == nullptr) continue;
    if (*name == json::value(model) && *state == json::value("ready")) return true;
  }
  return false;
}

class Screen {
 public:
  Screen(const AskOptions& options, std::string waited_for)
      : reasoning_(options.reasoning == Reasoning::shown || (terminal_ && is_terminal(2))),
        waited_for_(std::move(waited_for)) {}

  NodeClient::GoOn text(std::string_view piece) {
    begin();
    end_reasoning();
    write(terminal_ ? shown_text(piece) : std::string(piece));
    return problem_ ? NodeClient::GoOn::no : NodeClient::GoOn::yes;
  }
  void reasoning(std::string_view piece) {
    begin();
    if (!reasoning_) return;
    const std::string shown = is_terminal(2) ? shown_text(piece) : std::string(piece);
    fmt::print(stderr, "{}{}", colour_ && !thinking_ ? kDim : "", shown);
    std::fflush(stderr);
    thinking_ = true;
  }
  void prompt(std::uint64_t read, std::uint64_t all) {
    if (all > 0 && read < all) prompt_ = fmt::format("reading the prompt, {} %", read * 100 / all);
  }
  void wait() {
    const auto passed = Time::now() - asked_;
    if (first_ || passed < kPatience) return;
    line_.show(fmt::format("{}, {} s", prompt_.empty() ? waited_for_ : prompt_,
                           std::chrono::duration_cast<std::chrono::seconds>(passed).count()));
  }
  // The last line is a whole one.
  void end() {
    line_.clear();
    end_reasoning();
    if (wrote_ && last_ != '\n' && !problem_) write("\n");
  }
  void statistics(const AnswerFacts& facts) const {
    const auto whole = Time::now() - asked_;
    const auto first = first_.value_or(Time::now()) - asked_;
    fmt::print(stderr, "werk: prompt {} tokens, {} of them cached; first word after {:.2f} s; ",
               facts.prompt_tokens.value_or(0), facts.cached_tokens.value_or(0), seconds(first));
    fmt::print(stderr, "answer {} tokens in {:.2f} s ({:.1f} a second)\n",
               facts.answer_tokens.value_or(0), seconds(whole),
               static_cast<double>(facts.answer_tokens.value_or(0)) /
                   std::max(seconds(whole - first), 0.001));
  }

  const std::optional<Error>& problem() const { return problem_; }
  bool reader_left() const { return reader_left_; }

 private:
  void begin() {
    if (!first_) first_ = Time::now();
    line_.clear();
  }
  void end_reasoning() {
    if (!thinking_) return;
    fmt::print(stderr, "{}\n\n", colour_ ? kPlain : "");
    std::fflush(stderr);
    thinking_ = false;
  }
  void write(std::string_view bytes) {
    while (!bytes.empty() && !problem_) {
      const ssize_t count = ::write(STDOUT_FILENO, bytes.data(), bytes.size());
      if (count < 0 && errno == EINTR) continue;
      if (count < 0) {
        reader_left_ = errno == EPIPE;
        problem_ = Error{reader_left_ ? ErrorCode::cancelled : ErrorCode::io,
                         fmt::format("cannot write the answer: {}", std::strerror(errno))};
        return;
      }
      last_ = bytes[static_cast<std::size_t>(count) - 1];
      wrote_ = true;
      bytes.remove_prefix(static_cast<std::size_t>(count));
    }
  }

  bool terminal_ = is_terminal(1);
  bool colour_ = can_colour(2);
  bool reasoning_;
  std::string waited_for_;
  std::string prompt_;
  PassingLine line_;
  Time::time_point asked_ = Time::now();
  std::optional<Time::time_point> first_;
  bool thinking_ = false;
  bool wrote_ = false;
  char last_ = '\n';
  std::optional<Error> problem_;
  bool reader_left_ = false;
};

Result<std::string> waited_for(const NodeClient& node, const std::string& model) {
  if (!can_rewrite(2)) return std::string();
  if (model.empty()) return std::string("waiting for the model");
  auto loaded = is_loaded(node, model);
  if (!loaded) return pass_on(loaded);
  return fmt::format("{} {}", *loaded ? "waiting for" : "loading", model);
}

}  // namespace

std::string question_body(const std::string& model, const std::string& messages,
                          const AskOptions& options) {
  json::object body;
  if (!model.empty()) body["model"] = model;
  body["messages"] = json::parse(messages);
  if (options.max_tokens) body["max_tokens"] = *options.max_tokens;
  if (options.temperature) body["temperature"] = *options.temperature;
  return json::serialize(body);
}

Answered show_answer(const NodeClient& node, const std::string& model, const std::string& messages,
                     const AskOptions& options) {
  Answered answered;
  Result<std::string> wait = waited_for(node, model);
  if (!wait) {
    answered.problem = wait.error();
    return answered;
  }
  Screen screen(options, std::move(*wait));
  NodeClient::GoOn go_on = NodeClient::GoOn::yes;
  AnswerListener listener;
  listener.on_text = [&](std::string_view piece) {
    if (answered.text.size() + piece.size() > kAnswerBytesMax) go_on = NodeClient::GoOn::no;
    answered.text += piece;
    if (screen.text(piece) == NodeClient::GoOn::no) go_on = NodeClient::GoOn::no;
  };
  listener.on_reasoning = [&](std::string_view piece) { screen.reasoning(piece); };
  listener.on_prompt = [&](std::uint64_t read, std::uint64_t all) { screen.prompt(read, all); };
  AnswerReader reader(std::move(listener));
  NodeRequest request;
  request.method = "POST";
  request.target = "/v1/chat/completions";
  request.body = question_body(model, messages, options);
  request.body.pop_back();
  request.body += R"(,"stream":true,"stream_options":{"include_usage":true},)"
                  R"("return_progress":true})";
  request.on_wait = [&] { screen.wait(); };
  Status read;
  Status asked = node.stream(request, [&](std::string_view piece) {
    read = reader.feed(piece);
    return read ? go_on : NodeClient::GoOn::no;
  });
  screen.end();
  answered.facts = reader.facts();
  answered.reader_left = screen.reader_left();
  // What the node says of its own failure tells more than the end of the connection.
  if (!read) {
    answered.problem = read.error();
  } else if (screen.problem()) {
    answered.problem = screen.problem();
  } else if (!asked) {
    answered.problem = asked.error();
  } else if (!reader.is_whole()) {
    answered.problem = Error{ErrorCode::engine_failed, "the answer broke off before its end"};
  }
  if (!answered.problem && options.verbose == Verbose::yes) screen.statistics(answered.facts);
  return answered;
}

}  // namespace werk::app
