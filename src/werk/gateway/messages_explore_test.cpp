// Explores the Messages event stream: every order of text, reasoning and tool calls up to five
// events, every end, and a failure at every point. What comes out is read by a strict reader that
// knows only the dialect's grammar, and compared with what went in. Planted faults prove that the
// reader would notice.
#include <gtest/gtest.h>

#include <array>
#include <functional>

#include "werk/base/json_cursor.hpp"
#include "werk/gateway/messages_errors.hpp"
#include "werk/gateway/messages_fold.hpp"
#include "werk/gateway/messages_stream.hpp"

namespace werk::gateway {
namespace {

struct Block {
  std::string type;
  std::string id;
  std::string name;
  std::string text;
  bool operator==(const Block&) const = default;
};

// What a strict client makes of a stream. `fault` is the first breach of the grammar.
class Reader {
 public:
  explicit Reader(std::string_view bytes) {
    while (!bytes.empty() && fault.empty()) {
      const std::size_t end = bytes.find("\n\n");
      if (end == std::string_view::npos) {
        broken("the last event has no end");
        return;
      }
      event(bytes.substr(0, end));
      bytes.remove_prefix(end + 2);
    }
  }

  std::string fault;
  std::vector<Block> blocks;
  std::string reason;
  bool started = false;
  bool open = false;
  bool stopped = false;
  bool errored = false;

 private:
  void broken(std::string what) {
    if (fault.empty()) fault = std::move(what);
  }
  static std::string member(std::string_view object, std::string_view name) {
    const auto value = find_member(object, name).value_or("");
    return json_string(value).value_or(std::string(value));
  }
  void event(std::string_view text) {
    const std::size_t line = text.find('\n');
    if (!text.starts_with("event: ") || line == std::string_view::npos ||
        text.substr(line + 1, 6) != "data: ")
      return broken("an event is not of two lines");
    const std::string_view data = text.substr(line + 7);
    JsonScanner scanner;
    if (!scanner.feed(data) || !scanner.finish()) return broken("data is no JSON");
    const std::string name(text.substr(7, line - 7));
    if (member(data, "type") != name) return broken("the event's name is not its type");
    if (stopped || errored) return broken("something follows the end");
    if (name == "ping") return;
    if (name == "error") {
      errored = true;
      return;
    }
    take(name, data);
  }
  void take(const std::string& name, std::string_view data) {
    if (name == "message_start") {
      if (std::exchange(started, true)) broken("a second start");
      return;
    }
    if (!started) return broken("something comes before the start");
    if (name == "message_stop") {
      if (reason.empty()) broken("a stop without a reason");
      stopped = true;
      return;
    }
    if (!reason.empty()) return broken("something stands between the reason and the stop");
    if (name == "message_delta") {
      if (open) broken("the message ends in a block");
      reason = member(*find_member(data, "delta"), "stop_reason");
      if (member(*find_member(data, "usage"), "output_tokens") != "9") broken("usage is wrong");
      return;
    }
    take_block(name, data);
  }
  void take_block(const std::string& name, std::string_view data) {
    const bool starts = name == "content_block_start";
    const std::size_t index = blocks.size() - (starts ? 0 : 1);
    if (member(data, "index") != std::to_string(index)) return broken("a wrong index");
    if (starts == open) return broken(open ? "a block in a block" : "a block that is not open");
    if (starts) {
      const auto head = *find_member(data, "content_block");
      blocks.push_back(Block{member(head, "type"), member(head, "id"), member(head, "name"), ""});
      if (blocks.back().type == "tool_use" && member(head, "input") != "{}") broken("an input");
      open = true;
    } else if (name == "content_block_stop") {
      if (blocks.back().text.empty() && blocks.back().type != "tool_use") broken("an empty block");
      open = false;
    } else if (name == "content_block_delta") {
      take_delta(*find_member(data, "delta"));
    } else {
      broken("an unknown event " + name);
    }
  }
  void take_delta(std::string_view delta) {
    const std::string type = member(delta, "type");
    Block& block = blocks.back();
    if (type == "signature_delta" && block.type == "thinking") return;
    if (type == "text_delta" && block.type == "text") {
      block.text += member(delta, "text");
    } else if (type == "thinking_delta" && block.type == "thinking") {
      block.text += member(delta, "thinking");
    } else if (type == "input_json_delta" && block.type == "tool_use") {
      block.text += member(delta, "partial_json");
    } else {
      broken("a delta of another kind than its block");
    }
  }
};

enum class Fault {
  none,
  second_start,
  first_arguments_lost,
  block_left_open,
  block_closed_twice,
  text_in_thinking,
  always_tool_use,
  never_tool_use,
  length_hidden,
  delta_after_end,
  no_stop,
  stop_after_error,
  reasoning_as_text,
};

// Stands between the state machine and the writer and gets something wrong.
class FaultySink final : public BlockSink {
 public:
  FaultySink(BlockSink& sink, Fault fault) : sink_(sink), fault_(fault) {}

  void start(const MessageUsage& usage) override {
    sink_.start(usage);
    usage_ = usage;
  }
  void open(const BlockHead& head) override {
    if (fault_ == Fault::second_start) sink_.start(usage_);
    const bool after_thinking = kind_ == BlockKind::thinking && head.kind == BlockKind::text;
    kind_ = head.kind;
    first_ = true;
    if (fault_ == Fault::text_in_thinking && after_thinking) return;
    BlockHead said = head;
    if (fault_ == Fault::reasoning_as_text && head.kind == BlockKind::thinking)
      said.kind = BlockKind::text;
    sink_.open(said);
  }
  void delta(std::string_view text) override {
    const bool lost = fault_ == Fault::first_arguments_lost && kind_ == BlockKind::tool_use;
    if (!lost || !first_) sink_.delta(text);
    first_ = false;
  }
  void close() override {
    if (fault_ != Fault::block_left_open) sink_.close();
    if (fault_ == Fault::block_closed_twice) sink_.close();
  }
  void end(const MessageEnd& end) override {
    MessageEnd said = end;
    if (fault_ == Fault::always_tool_use) said.reason = StopReason::tool_use;
    if (fault_ == Fault::never_tool_use && end.reason == StopReason::tool_use)
      said.reason = StopReason::end_turn;
    if (fault_ == Fault::length_hidden && end.reason == StopReason::max_tokens)
      said.reason = StopReason::end_turn;
    sink_.end(said);
    if (fault_ == Fault::delta_after_end) sink_.delta("more");
  }

 private:
  BlockSink& sink_;
  Fault fault_;
  MessageUsage usage_;
  BlockKind kind_ = BlockKind::text;
  bool first_ = true;
};

// T text, R reasoning, A and B the next fragment of one of two calls, W a whole call.
constexpr std::string_view kLetters = "TRABW";
constexpr std::array<std::string_view, 3> kFragments = {"{\"p\":\"", "あ\\ud83d", "\\ude00\"}"};

enum class End { stop, tool_calls, length, failure, nothing };

// The events of a word of letters, and the blocks they mean.
struct Story {
  std::vector<chat::GenerationEvent> events;
  std::vector<Block> blocks;
  bool possible = true;  // no call goes on after its end
  bool cut_call = false;
  bool has_call = false;

  explicit Story(std::string_view word) {
    std::array<std::size_t, 2> told{};
    std::array<std::size_t, 2> place{};
    for (std::size_t i = 0; i < word.size(); ++i) {
      const std::string text = word[i] + std::to_string(i) + "é";
      if (word[i] == 'T' || word[i] == 'R') {
        tell(word[i], text);
      } else if (word[i] == 'W') {
        call(static_cast<std::uint32_t>(10 + i), text, "{\"w\":[1,2]}");
      } else {
        const std::size_t which = word[i] == 'A' ? 0 : 1;
        if (told[which] == kFragments.size()) {
          possible = false;
          return;
        }
        const std::string fragment(kFragments[told[which]++]);
        if (told[which] == 1) {
          place[which] = blocks.size();
          call(static_cast<std::uint32_t>(which), text, fragment);
        } else {
          events.emplace_back(
              chat::ToolCallDelta{static_cast<std::uint32_t>(which), "", "", fragment});
          blocks[place[which]].text += fragment;
        }
      }
    }
    for (const std::size_t count : told)
      cut_call = cut_call || (count > 0 && count < kFragments.size());
  }

 private:
  void tell(char letter, const std::string& text) {
    const std::string type = letter == 'T' ? "text" : "thinking";
    if (letter == 'T') {
      events.emplace_back(chat::TextDelta{text});
      events.emplace_back(chat::TextDelta{""});
    } else {
      events.emplace_back(chat::ReasoningDelta{text});
    }
    if (blocks.empty() || blocks.back().type != type) blocks.push_back(Block{type, "", "", ""});
    blocks.back().text += text;
  }
  void call(std::uint32_t index, const std::string& id, const std::string& arguments) {
    has_call = true;
    events.emplace_back(chat::ToolCallDelta{index, "id-" + id.substr(0, 2), "f" + id, arguments});
    blocks.push_back(Block{"tool_use", "toolu_id-" + id.substr(0, 2), "f" + id, arguments});
  }
};

chat::Finished finished(End end) {
  chat::Finished event;
  event.usage = chat::Usage{7, 3, 9};
  if (end == End::tool_calls) event.reason = chat::FinishReason::tool_calls;
  if (end == End::length) event.reason = chat::FinishReason::length;
  return event;
}

MessagesStreamOptions stream_options() {
  MessagesStreamOptions options;
  options.message_id = "msg_1";
  options.client_model = "m";
  return options;
}

// The bytes of a story, by the real stream or by one with a fault in it.
std::string tell(const Story& story, End end, Fault fault) {
  std::string out;
  MessagesStream stream(stream_options(), out);
  MessageEventWriter writer("msg_1", "m", out);
  FaultySink faulty(writer, fault);
  MessageBlocks blocks(MessageBlocksOptions{}, faulty);
  const auto take = [&](const chat::GenerationEvent& event) {
    return fault == Fault::none ? stream.event(event) : blocks.event(event);
  };
  const auto failed = [&](const Error& error) {
    if (fault == Fault::none) return stream.error(error);
    out += messages_error_event(error, "");
    if (fault == Fault::stop_after_error)
      out += "event: message_stop\ndata: {\"type\":\"message_stop\"}\n\n";
  };
  Status status = take(chat::Started{7, 3});
  for (const chat::GenerationEvent& event : story.events) {
    if (status) status = take(event);
  }
  if (status && end == End::failure) status = fail(ErrorCode::engine_failed, "the engine died");
  if (status && end != End::nothing) status = take(finished(end));
  if (!status) failed(status.error());
  if (fault == Fault::none) {
    // Whatever comes late changes nothing.
    const std::size_t size = out.size();
    if (end != End::nothing) {
      EXPECT_TRUE(take(chat::TextDelta{"late"}));
      stream.ping();
      stream.error(Error{});
      EXPECT_EQ(out.size(), size);
    }
  }
  if (fault == Fault::no_stop) out.resize(std::min(out.size(), out.find("event: message_stop")));
  return out;
}

bool begins_like(const std::vector<Block>& seen, const std::vector<Block>& told) {
  if (seen.size() > told.size()) return false;
  for (std::size_t i = 0; i < seen.size(); ++i) {
    if (seen[i].type != told[i].type || seen[i].name != told[i].name) return false;
    if (!told[i].text.starts_with(seen[i].text)) return false;
    const bool last = i + 1 == seen.size();
    if (!last && seen[i].text != told[i].text) return false;
  }
  return true;
}

// What is wrong with the bytes of a story; empty if nothing is.
std::string judge(const Story& story, End end, std::string_view bytes) {
  const Reader reader(bytes);
  if (!reader.fault.empty()) return reader.fault;
  const bool cut = story.cut_call && (end == End::stop || end == End::tool_calls);
  if (end == End::failure || cut) {
    if (!reader.errored || reader.stopped) return "a failure is not told";
    return begins_like(reader.blocks, story.blocks) ? "" : "the blocks before a failure differ";
  }
  if (end == End::nothing) {
    if (reader.errored || reader.stopped) return "an invented end";
    if (!story.cut_call && reader.blocks != story.blocks) return "something is held back";
    return begins_like(reader.blocks, story.blocks) ? "" : "the blocks so far differ";
  }
  if (reader.errored || !reader.stopped) return "the end is missing";
  if (reader.blocks != story.blocks) return "the blocks differ from the source";
  const std::string_view reason = end == End::length ? "max_tokens"
                                  : story.has_call   ? "tool_use"
                                                     : "end_turn";
  return reader.reason == reason ? "" : "the reason is " + reader.reason;
}

// Visits every possible story; stops when the visitor says so.
void explore(const std::function<bool(const Story&, End, const std::string&)>& visit) {
  constexpr std::size_t kLongest = 5;
  std::vector<std::string> words = {""};
  for (std::size_t i = 0; i < words.size(); ++i) {
    const Story story(words[i]);
    if (!story.possible) continue;
    for (const End end : {End::stop, End::tool_calls, End::length, End::failure, End::nothing}) {
      if (!visit(story, end, words[i])) return;
    }
    if (words[i].size() == kLongest) continue;
    for (const char letter : kLetters) words.push_back(words[i] + letter);
  }
}

TEST(MessagesExplored, EveryOrderOfTextReasoningAndCallsMakesOneRightStream) {
  std::size_t stories = 0;
  explore([&](const Story& story, End end, const std::string& word) {
    const std::string bytes = tell(story, end, Fault::none);
    const std::string wrong = judge(story, end, bytes);
    EXPECT_EQ(wrong, "") << word << " with end " << static_cast<int>(end) << "\n" << bytes;
    ++stories;
    return wrong.empty();
  });
  EXPECT_GT(stories, 10'000u);
}

std::vector<Block> blocks_of(std::string_view message) {
  std::vector<Block> blocks;
  JsonArrayCursor content(find_member(message, "content").value_or(""));
  while (const auto each = content.next()) {
    const auto text = [&](std::string_view name) {
      return json_string(find_member(*each, name).value_or("")).value_or("");
    };
    blocks.push_back(Block{text("type"), text("id"), text("name"), text("text")});
    blocks.back().text += text("thinking");
    blocks.back().text += find_member(*each, "input").value_or("");
  }
  return blocks;
}

TEST(MessagesExplored, TheWholeMessageSaysTheSameAsTheStream) {
  explore([](const Story& story, End end, const std::string& word) {
    if (end == End::failure || end == End::nothing) return true;
    MessagesFold fold(MessagesFoldOptions{.message_id = "msg_1", .client_model = "m"});
    Status status = fold.event(chat::Started{7, 3});
    for (const chat::GenerationEvent& event : story.events) {
      if (status) status = fold.event(event);
    }
    if (status) status = fold.event(finished(end));
    const bool cut = story.cut_call && end != End::length;
    EXPECT_EQ(status.has_value(), !cut) << word;
    EXPECT_EQ(fold.finish().has_value(), !cut) << word;
    if (!status || story.cut_call) return !::testing::Test::HasFailure();
    const std::string message = *fold.finish();
    EXPECT_EQ(blocks_of(message), story.blocks) << word << message;
    const Reader reader(tell(story, end, Fault::none));
    EXPECT_EQ(json_string(*find_member(message, "stop_reason")), reader.reason) << word;
    return !::testing::Test::HasFailure();
  });
}

TEST(MessagesExplored, PlantedFaultsAreNoticed) {
  for (int fault = 1; fault <= static_cast<int>(Fault::reasoning_as_text); ++fault) {
    std::string noticed;
    explore([&](const Story& story, End end, const std::string&) {
      noticed = judge(story, end, tell(story, end, static_cast<Fault>(fault)));
      return noticed.empty();
    });
    EXPECT_NE(noticed, "") << "fault " << fault << " was not noticed";
  }
}

TEST(MessagesExplored, FragmentsMayBeCutAtEveryByte) {
  const std::string text = "漢字 ñ 😀\u2028\"\\\n\x01 end";
  const std::string arguments = R"({"k":"漢 😀 \ud83d\ude00 \" \\","n":[1,{"z":null}]})";
  const auto run = [&](std::size_t cut, std::size_t step) {
    std::string out;
    MessagesStream stream(stream_options(), out);
    const auto pieces = [&](const std::string& whole, const auto& make) {
      for (std::size_t at = 0; at < whole.size();) {
        const std::size_t size = step > 0 ? step : at == 0 ? cut : whole.size();
        EXPECT_TRUE(stream.event(make(whole.substr(at, size))));
        at += size;
      }
    };
    pieces(text, [](std::string piece) { return chat::ReasoningDelta{std::move(piece)}; });
    pieces(text, [](std::string piece) { return chat::TextDelta{std::move(piece)}; });
    pieces(arguments, [](std::string piece) {
      return chat::ToolCallDelta{0, "c", "f", std::move(piece)};
    });
    EXPECT_TRUE(stream.event(finished(End::tool_calls)));
    const Reader reader(out);
    EXPECT_EQ(reader.fault, "");
    EXPECT_EQ(reader.blocks, (std::vector<Block>{{"thinking", "", "", text},
                                                 {"text", "", "", text},
                                                 {"tool_use", "toolu_c", "f", arguments}}));
    return out.find("\xEF\xBF\xBD") == std::string::npos;
  };
  for (std::size_t cut = 1; cut < arguments.size(); ++cut) EXPECT_TRUE(run(cut, 0)) << cut;
  EXPECT_TRUE(run(0, 1)) << "one byte each";
}

}  // namespace
}  // namespace werk::gateway
