// Runs every .exchange file below this folder as one test, named after the file. README.md says how
// they are written.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <list>

#include "tests/api/answer.hpp"
#include "tests/api/api_node.hpp"
#include "tests/api/chunk_words.hpp"
#include "tests/api/match.hpp"
#include "tests/api/message_words.hpp"
#include "tests/support/loop_fixture.hpp"
#include "tests/support/offload_barrier.hpp"
#include "tests/support/raw_client.hpp"
#include "werk/base/json_cursor.hpp"
#include "werk/base/text.hpp"

namespace werk::test {
namespace {

constexpr std::string_view kBackground = "expect in the background";
constexpr auto kStep = std::chrono::milliseconds(100);
constexpr int kStepsMax = 72'000;  // two hours of the node's time

// One request and everything that the file says about it.
struct Step {
  const Section* request = nullptr;
  std::vector<const Section*> engine_answers;
  const Section* engine_receives = nullptr;
  const Section* engine_head = nullptr;
  const Section* expect = nullptr;
  std::string body;
  std::string model_json;
};

// Whether the node's clock may be moved while the test waits.
enum class Time : std::uint8_t { stands, passes_when_played };

class Api : public LoopFixture, public ::testing::WithParamInterface<std::string> {
 protected:
  void TearDown() override {
    if (!node_) return;
    clients_.clear();
    bool closed = false;
    start(close_node(closed));
    played_.set();
    settle([&closed] { return closed; }, Time::passes_when_played);
    run_until([this] { return offload_barrier_.idle(); });
    node_.reset();
  }

  void play(const ExchangeFile& file) {
    node_ = std::make_unique<ApiNode>(executor(), offload_, file.node, file.models);
    default_model_ = file.node.default_model.value_or("");
    for (std::size_t i = 0; i < file.steps.size() && !HasFatalFailure();) {
      const Section& section = file.steps[i];
      const ::testing::ScopedTrace place(GetParam().c_str(), static_cast<int>(section.line),
                                         section.title);
      if (!begins_step(section)) {
        change_node(section);
        ++i;
        continue;
      }
      Step step;
      step.request = &section;
      for (++i; i < file.steps.size() && take(step, file.steps[i]); ++i) {
      }
      run_step(step);
    }
  }

 private:
  async::awaitable<void> close_node(bool& closed) {
    co_await node_->close();
    closed = true;
  }

  static bool begins_step(const Section& section) {
    return section.is("request") || section.is("chat") || section.is("messages") ||
           section.is("count");
  }

  // Whether the section belongs to the request before it.
  static bool take(Step& step, const Section& section) {
    if (section.is("engine answers") || section.is("engine is silent")) {
      step.engine_answers.push_back(&section);
    } else if (section.is("engine receives head")) {
      step.engine_head = &section;
    } else if (section.is("engine receives")) {
      step.engine_receives = &section;
    } else if (section.is("expect") && !section.is(kBackground)) {
      step.expect = &section;
    } else {
      return false;
    }
    return true;
  }

  void change_node(const Section& section) {
    if (section.is("node drains")) {
      node_->gateway().begin_drain();
      node_->server().stop_keep_alive();
      node_->cache().begin_shutdown();
      poll();
    } else if (section.is("events end")) {
      node_->recorder().events().end();
    } else if (section.is("node is not ready")) {
      node_->gateway().set_not_ready(section.text);
    } else if (section.is("time passes ")) {
      const std::string seconds(section.after("time passes "));
      poll();
      node_->clock().advance(std::chrono::seconds(std::stoi(seconds)));
      poll();
    } else if (section.is("engine of ")) {
      engine_prints(section);
    } else if (section.is(kBackground)) {
      look_at_background(section);
    } else if (section.is("client leaves")) {
      const std::uint64_t active = node_->gateway().calls().active;
      clients_.pop_back();
      settle([&] { return node_->gateway().calls().active < active; }, Time::stands);
    } else if (section.is("engine never receives")) {
      for (const std::string_view text : lines_of(section.text)) {
        EXPECT_EQ(node_->engine_server().bytes_received().find(text), std::string::npos)
            << "the engine was sent: " << text;
      }
    } else {
      FAIL() << "unknown section '" << section.title << "'";
    }
  }

  // `engine of MODEL prints`: lines that its engine left; <home> is the node's.
  void engine_prints(const Section& section) {
    std::string model(section.after("engine of "));
    model.resize(model.rfind(" prints"));
    for (const std::string_view line : lines_of(section.text)) {
      std::string text(line);
      if (const auto at = text.find("<home>"); at != text.npos) text.replace(at, 6, node_->home());
      node_->output().line(model, text);
    }
  }

  Answer await_answer(RawClient& client, AnswerTo to) {
    Answer answer;
    const auto answered = [&] {
      const Connection connection = client.ended() ? Connection::ended : Connection::open;
      answer = read_answer(client.received(), to, connection);
      return answer.whole || client.ended();
    };
    settle(answered, Time::passes_when_played);
    answered();
    return answer;
  }

  // The answer of the latest call in the background.
  void look_at_background(const Section& section) {
    ASSERT_FALSE(clients_.empty()) << "no call is in the background";
    const Answer answer = await_answer(*clients_.back(), AnswerTo::other_request);
    Section expected = section;
    expected.title = "expect " + std::string(section.after(kBackground));
    Step step;
    step.expect = &expected;
    step.model_json = background_model_json_;
    check_answer(step, answer);
    clients_.pop_back();
  }

  // ---- what is sent

  std::string request_bytes(Step& step) {
    const std::string_view text = step.request->text;
    std::string_view path = "/v1/chat/completions";
    if (step.request->is("messages")) path = "/v1/messages";
    if (step.request->is("count")) path = "/v1/messages/count_tokens";
    std::string head = fmt::format("POST {}\nContent-Type: application/json", path);
    std::string_view body = text;
    if (step.request->is("request")) {
      const std::size_t blank = text.find("\n\n");
      head = text.substr(0, blank);
      body = blank == std::string_view::npos ? std::string_view() : text.substr(blank + 2);
    }
    step.body = expanded(body);
    const auto model = find_member(step.body, "model");
    step.model_json = model ? std::string(*model) : to_json_string(default_model_);
    std::string bytes;
    bool first = true;
    for (const std::string_view line : lines_of(head)) {
      bytes += expanded(line);
      if (std::exchange(first, false) && line.find(" HTTP/") == std::string_view::npos)
        bytes += " HTTP/1.1";
      bytes += "\r\n";
    }
    const std::string lower = to_lower(bytes);
    if (lower.find("\nhost:") == std::string::npos && lower.find("http/1.1") != std::string::npos)
      bytes += "Host: 127.0.0.1\r\n";
    if (step.request->title.ends_with("in chunks"))
      return bytes + "Transfer-Encoding: chunked\r\n\r\n" + in_small_chunks(step.body);
    const bool framed = lower.find("\ncontent-length:") != std::string::npos ||
                        lower.find("\ntransfer-encoding:") != std::string::npos;
    if (!framed && !step.body.empty())
      bytes += fmt::format("Content-Length: {}\r\n", step.body.size());
    return bytes + "\r\n" + step.body;
  }

  // ---- what the engine says

  Reply reply_of(const Section& section) {
    if (section.is("engine is silent")) {
      return Reply().tell(played_).end(Reply::End::hang);
    }
    const std::string_view how = section.after("engine answers");
    if (how == "events") return event_reply(section);
    if (how == "message events") return message_reply(section);
    if (how == "bytes") return byte_reply(section);
    const std::string status(how.substr(0, how.find(' ')));
    const std::string_view type = trim(how.substr(status.size()));
    Reply reply = Reply::whole(std::stoi(status), type.empty() ? "application/json" : type,
                               expanded(section.text));
    return reply.tell(played_);
  }

  Reply event_reply(const Section& section) {
    const std::string model = to_json_string(kEngineModel);
    Reply reply = Reply::stream("text/event-stream");
    for (std::string_view line : lines_of(section.text)) {
      if (ends_reply(reply, line)) return reply;
      constexpr std::string_view kPause = "<time passes ";
      if (line.starts_with(kPause)) {
        Pause& pause = pauses_.emplace_back(executor());
        pause.length = std::chrono::seconds(std::stoi(std::string(line.substr(kPause.size()))));
        reply.tell(pause.reached).wait_for(pause.over);
        continue;
      }
      std::string event = take_event_name(line);
      if (line.starts_with(':')) {
        event += fmt::format("{}\n\n", line);
      } else if (!trim(line).empty()) {
        event += fmt::format("data: {}\n\n", expanded(chunk_data(line, model)));
      } else if (event.empty()) {
        continue;
      } else {
        event += "data: \n\n";
      }
      reply.chunk(event);
    }
    return reply.last_chunk().tell(played_);
  }

  Reply message_reply(const Section& section) {
    Reply reply = Reply::stream("text/event-stream");
    std::string words;
    std::string_view ending;
    for (const std::string_view line : lines_of(section.text)) {
      const bool ends = line == "<cut>" || line.starts_with("<engine ");
      if (ends) ending = line;
      if (!ends) words += std::string(line) + "\n";
    }
    for (const std::string& event : sent_message_events(words, to_json_string(kEngineModel)))
      reply.chunk(event);
    if (ends_reply(reply, ending)) return reply;
    return reply.last_chunk().tell(played_);
  }

  Reply byte_reply(const Section& section) {
    std::string bytes;
    bool in_head = true;
    Reply reply;
    for (const std::string_view line : lines_of(section.text)) {
      if (line.starts_with("<engine ") || line == "<cut>") {
        reply.send(bytes);
        ends_reply(reply, line);
        return reply;
      }
      bytes += expanded(line);
      bytes += in_head ? "\r\n" : "\n";
      in_head = in_head && !line.empty();
    }
    return reply.send(bytes).tell(played_).end(Reply::End::close);
  }

  bool ends_reply(Reply& reply, std::string_view line) {
    if (line == "<cut>") {
      reply.tell(played_).end(Reply::End::close);
    } else if (line == "<engine dies>") {
      reply.tell(died_).tell(played_).end(Reply::End::close);
    } else if (line == "<engine is silent>") {
      reply.tell(played_).end(Reply::End::hang);
    } else {
      return false;
    }
    return true;
  }

  // ---- one request

  void run_step(Step& step) {
    played_.reset();
    died_.reset();
    node_->engine_server().connection_closed().reset();
    for (const Section* answer : step.engine_answers)
      node_->engine_server().reply(reply_of(*answer));
    const std::size_t asked_before = node_->engine_server().requests().size();
    const std::size_t waiting_before = node_->waiting();
    const std::string bytes = request_bytes(step);
    clients_.push_back(std::make_unique<RawClient>(executor(), node_->socket()));
    RawClient& client = *clients_.back();
    ASSERT_EQ(client.send(bytes), bytes.size()) << "the kernel did not take the whole request";
    const auto asked = [&] { return node_->engine_server().requests().size() - asked_before; };
    if (step.request->title.ends_with("in the background")) {
      background_model_json_ = step.model_json;
      settle([&] { return asked() > 0 || node_->waiting() > waiting_before; }, Time::stands);
      poll();
      check_engine(step, asked());
      return;
    }
    const AnswerTo to =
        bytes.starts_with("HEAD ") ? AnswerTo::head_request : AnswerTo::other_request;
    const Answer answer = await_answer(client, to);
    check_engine(step, asked());
    if (step.expect) check_answer(step, answer);
    clients_.pop_back();
  }

  static void expect_same(const std::string& difference, std::string_view what) {
    if (!difference.empty())
      ADD_FAILURE() << what << "; expected (-) and received (+):\n" << difference;
  }

  void check_engine(const Step& step, std::size_t asked) {
    ASSERT_EQ(asked, step.engine_answers.size()) << "requests that reached the engine";
    if (asked == 0) return;
    const ReceivedRequest& request = node_->engine_server().requests().back();
    if (step.engine_receives) {
      const std::string wanted = expanded(step.engine_receives->text);
      expect_same(step.engine_receives->title.ends_with("json")
                      ? json_difference(wanted, request.body)
                      : text_difference(wanted, request.body),
                  "the body that the engine received");
    }
    if (step.engine_head) {
      std::string head = request.head;
      std::erase(head, '\r');
      expect_same(text_difference(step.engine_head->text + "\n\n", head),
                  "the head that the engine received");
    }
  }

  void check_answer(const Step& step, const Answer& answer) {
    const std::string_view how = step.expect->after("expect");
    const std::string_view kind = trim(how.substr(std::min(how.find(' '), how.size())));
    EXPECT_EQ(std::to_string(answer.status), how.substr(0, how.find(' '))) << answer.body;
    EXPECT_EQ(answer.fault, "");
    std::string_view text = step.expect->text;
    check_head(answer, text, kind);
    if (kind == "json") {
      EXPECT_TRUE(answer.whole) << "the answer was cut off";
      expect_same(json_difference(text, answer.body), answer.body);
    } else if (kind == "message events") {
      check_message_events(step, answer, text);
    } else if (kind == "events") {
      check_events(step, answer, text);
    } else if (text == "<empty>") {
      EXPECT_EQ(answer.body, "");
    } else if (!text.empty()) {
      EXPECT_TRUE(answer.whole) << "the answer was cut off";
      expect_same(text_difference(expanded(text), trim(answer.body)), "the answer's body");
    }
  }

  // The fields that the file names; takes them off the text.
  static void check_head(const Answer& answer, std::string_view& text, std::string_view kind) {
    if (kind == "json") {
      EXPECT_EQ(answer.field("Content-Type"), "application/json");
    } else if (kind.ends_with("events")) {
      EXPECT_EQ(answer.field("Content-Type"), "text/event-stream; charset=utf-8");
    }
    const auto is_field = [](std::string_view line) {
      const std::size_t end =
          line.find_first_not_of("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ-");
      return end != std::string_view::npos && end > 0 && line.substr(end).starts_with(": ");
    };
    while (is_field(text.substr(0, text.find('\n')))) {
      const std::string_view line = text.substr(0, text.find('\n'));
      const std::size_t colon = line.find(':');
      const std::string name(line.substr(0, colon));
      const std::string_view wanted = trim(line.substr(colon + 1));
      const auto value = answer.field(name);
      const bool fits = wanted == "<absent>" ? !value : value && text_matches(wanted, *value);
      EXPECT_TRUE(fits) << name << ": " << wanted << " was expected; the head was\n" << answer.head;
      text.remove_prefix(std::min(line.size() + 1, text.size()));
    }
    while (text.starts_with('\n')) text.remove_prefix(1);
  }

  static void check_events(const Step& step, const Answer& answer, std::string_view text) {
    std::string events;
    bool cut = false;
    for (std::string_view line : lines_of(text)) {
      if (line == "<cut>") {
        cut = true;
      } else if (line.starts_with(':')) {
        events += fmt::format("{}\n\n", line);
      } else if (!trim(line).empty()) {
        events += take_event_name(line);
        events += fmt::format("data: {}\n\n", expanded(chunk_data(line, step.model_json)));
      }
    }
    expect_same(text_difference(events, answer.body), "the events");
    EXPECT_EQ(answer.whole, !cut) << "whether the stream ended properly";
  }

  static void check_message_events(const Step& step, const Answer& answer, std::string_view text) {
    const MessageEvents events = message_events(text, step.model_json);
    expect_same(text_difference(events.bytes, answer.body), "the events");
    EXPECT_EQ(answer.whole, !events.cut) << "whether the stream ended properly";
  }

  // Turns of the loop until the condition holds. Once the engine has played its script and nothing
  // is left to do, the node's clock moves on.
  template <class Condition>
  void settle(Condition condition, Time time) {
    int steps = 0;
    run_until([&] {
      for (;;) {
        poll();
        if (died_.is_set()) {
          died_.reset();
          node_->engine().die();
          continue;
        }
        if (pass_pause()) continue;
        // A script whose rest nobody wants any more is over, too.
        const bool played = played_.is_set() || node_->engine_server().connection_closed().is_set();
        const bool loads = node_->engine().starting() && node_->cache().waiting() > 0;
        const bool may_move = time == Time::passes_when_played && (played || loads);
        if (condition() || !may_move || steps > kStepsMax) break;
        if (!offload_barrier_.passed()) break;
        node_->clock().advance(kStep);
        ++steps;
      }
      return condition() || steps > kStepsMax;
    });
    EXPECT_LE(steps, kStepsMax) << "two hours passed and nothing came";
  }

  // Moves the clock if the engine's script stands at a pause. Whether it did.
  bool pass_pause() {
    if (pauses_.empty() || !pauses_.front().reached.is_set()) return false;
    Pause& pause = pauses_.front();
    node_->clock().advance(pause.length);
    pause.over.set();
    poll();
    pauses_.pop_front();
    return true;
  }

  async::Offload offload_{1};
  OffloadBarrier offload_barrier_{loop_.executor(), offload_};
  async::Event played_{loop_.executor()};
  async::Event died_{loop_.executor()};
  std::list<Pause> pauses_;
  std::unique_ptr<ApiNode> node_;
  std::string default_model_;
  std::string background_model_json_;  // of the latest call in the background
  std::vector<std::unique_ptr<RawClient>> clients_;
};

const std::filesystem::path& folder() {
  static const std::filesystem::path path = WERK_API_FILES;
  return path;
}

TEST_P(Api, Holds) {
  const Result<ExchangeFile> file = read_exchange(content_of(folder() / GetParam()));
  ASSERT_TRUE(file) << GetParam() << ": " << file.error().message;
  play(*file);
  if (HasFailure()) ADD_FAILURE() << GetParam() << " says:" << file->sentence;
}

std::string test_name(const ::testing::TestParamInfo<std::string>& info) {
  std::string name = info.param.substr(0, info.param.rfind('.'));
  for (char& c : name) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
    if (!plain) c = '_';
  }
  return name;
}

INSTANTIATE_TEST_SUITE_P(Exchange, Api, ::testing::ValuesIn(exchange_files(folder())), test_name);

}  // namespace
}  // namespace werk::test
