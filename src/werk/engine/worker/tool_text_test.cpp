#include "werk/engine/worker/tool_text.hpp"

#include <gtest/gtest.h>

#include <vector>

namespace werk::engine::worker {
namespace {

// What a generation came to: text with calls in their places as [name arguments].
class Collected final : public chat::EventSink {
 public:
  Status event(const chat::GenerationEvent& event) override {
    if (const auto* text = std::get_if<chat::TextDelta>(&event)) shown += text->text;
    if (const auto* call = std::get_if<chat::ToolCallDelta>(&event)) {
      shown += "[" + call->id + " " + call->name + " " + call->arguments + "]";
    }
    return {};
  }
  std::string shown;
};

std::string run(const std::vector<std::string_view>& pieces) {
  ToolText reader(tool_formats().front(), "call_");
  Collected collected;
  for (const std::string_view piece : pieces)
    EXPECT_TRUE(reader.take(piece, collected).has_value());
  EXPECT_TRUE(reader.finish(collected).has_value());
  return collected.shown;
}

TEST(ToolText, FindsACallWhereverItIsCut) {
  const std::string text =
      "I look.\n<tool_call>\n{\"name\": \"ls\", \"arguments\": {\"p\": \"</a>\"}}\n</tool_call>\n";
  for (std::size_t a = 0; a <= text.size(); ++a) {
    for (std::size_t b = a; b <= text.size(); ++b) {
      const std::string_view whole = text;
      EXPECT_EQ(run({whole.substr(0, a), whole.substr(a, b - a), whole.substr(b)}),
                "I look.[call_0 ls {\"p\": \"</a>\"}]")
          << a << ' ' << b;
    }
  }
}

TEST(ToolText, ReadsSeveralCallsAndTheTextBetweenThem) {
  EXPECT_EQ(run({"<tool_call>{\"name\":\"a\",\"arguments\":{}}</tool_call>\n"
                 "<tool_call>{\"name\":\"b\"}</tool_call> and <tool_call>{\"name\":\"c\","
                 "\"arguments\":null}</tool_call>"}),
            "[call_0 a {}][call_1 b {}] and[call_2 c {}]");
}

TEST(ToolText, LeavesWhatIsNoCallAsText) {
  for (const auto* text :
       {"a <tool_cal b", "<tool_call>no json</tool_call>", "<tool_call>{\"name\":3}</tool_call>",
        "<tool_call>{\"name\":\"a\",\"arguments\":[1]}</tool_call>", "<tool_call>{\"name\":\"a\"",
        "ends with <tool_", "blanks at the end \n "}) {
    EXPECT_EQ(run({text}), text);
  }
}

TEST(ToolText, TakesACallWhoseClosingMarkWasForgotten) {
  EXPECT_EQ(run({"<tool_call>{\"name\":\"a\",\"arguments\":{\"x\":1}}"}), "[call_0 a {\"x\":1}]");
}

TEST(ToolText, HoldsBackOnlyWhatMayBeACall) {
  ToolText reader(tool_formats().front(), "c");
  Collected collected;
  EXPECT_TRUE(reader.take("a < b \n<to", collected).has_value());
  EXPECT_EQ(collected.shown, "a < b");
  EXPECT_TRUE(reader.take("day>", collected).has_value());
  EXPECT_EQ(collected.shown, "a < b \n<today>");
}

}  // namespace
}  // namespace werk::engine::worker
