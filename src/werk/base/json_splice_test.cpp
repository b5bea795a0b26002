#include "werk/base/json_splice.hpp"

#include <gtest/gtest.h>

#include <functional>

#include "werk/base/json_cursor.hpp"

namespace werk {
namespace {

std::string edited(std::string_view text, const std::function<void(JsonObjectEditor&)>& edit) {
  JsonSplice splice(text);
  JsonObjectEditor editor(splice, trim_json(text));
  edit(editor);
  editor.commit();
  return splice.apply();
}

TEST(JsonSplice, AppliesEditsInOnePassInAnyOrder) {
  JsonSplice splice("0123456789");
  splice.replace({7, 9}, "B");
  splice.insert(2, "<");
  splice.replace({2, 4}, "a");
  splice.insert(4, ">");
  splice.insert(4, "!");
  splice.insert(10, "end");
  EXPECT_EQ(splice.apply(), "01<a>!456B9end");
}

TEST(JsonObjectEditor, RemovesAMemberWithItsCommaWhereverItStands) {
  const std::string_view text = R"({ "a": 1 , "b":null,"c" : [1] })";
  const auto without = [&](std::initializer_list<std::string_view> keys) {
    return edited(text, [&](JsonObjectEditor& editor) {
      for (const auto key : keys) editor.remove(key);
    });
  };
  EXPECT_EQ(without({"a"}), R"({ "b":null,"c" : [1] })");
  EXPECT_EQ(without({"b"}), R"({ "a": 1,"c" : [1] })");
  EXPECT_EQ(without({"c"}), R"({ "a": 1 , "b":null })");
  EXPECT_EQ(without({"a", "b"}), R"({ "c" : [1] })");
  EXPECT_EQ(without({"b", "c"}), R"({ "a": 1 })");
  EXPECT_EQ(without({"a", "c"}), R"({ "b":null })");
  EXPECT_EQ(without({"a", "b", "c"}), R"({  })");
  EXPECT_EQ(without({"x"}), text);
}

// Every set of removals, with and without an addition, on objects of up to five members: always
// valid JSON with exactly the members that should be there.
TEST(JsonObjectEditor, CommasAreRightForEverySetOfEdits) {
  for (int members = 0; members <= 5; ++members) {
    std::string text = "{ ";
    for (int i = 0; i < members; ++i) {
      text += (i > 0 ? " , " : "") + std::string("\"k") + std::to_string(i) +
              "\" : " + std::to_string(i);
    }
    text += " }";
    for (int removed = 0; removed < (1 << members); ++removed) {
      for (int added = 0; added <= 2; ++added) {
        std::string expected;
        const std::string out = edited(text, [&](JsonObjectEditor& editor) {
          for (int i = 0; i < members; ++i) {
            const std::string key = "k" + std::to_string(i);
            if ((removed >> i & 1) != 0) {
              editor.remove(key);
            } else {
              expected += key + "=" + std::to_string(i) + ";";
            }
          }
          for (int i = 0; i < added; ++i) {
            editor.set("new" + std::to_string(i), "true");
            expected += "new" + std::to_string(i) + "=true;";
          }
        });
        JsonScanner scanner;
        ASSERT_TRUE(scanner.feed(out)) << out;
        ASSERT_TRUE(scanner.finish()) << out;
        std::string seen;
        for (const JsonMember& member : scanner.members()) {
          seen += member.key + "=" + std::string(member.value.in(out)) + ";";
        }
        EXPECT_EQ(seen, expected) << out;
      }
    }
  }
}

TEST(JsonObjectEditor, SetsAValueInPlaceOrAddsTheMember) {
  const auto set_model = [](JsonObjectEditor& editor) { editor.set("model", "\"m\""); };
  EXPECT_EQ(edited(R"({"z":1,"model" : 12,"a":2})", set_model), R"({"z":1,"model" : "m","a":2})");
  EXPECT_EQ(edited(R"({"mod\u0065l":{}})", set_model), R"({"mod\u0065l":"m"})");
  EXPECT_EQ(edited("{}", set_model), R"({"model":"m"})");
  EXPECT_EQ(edited("\n{ \n}\n", set_model), "\n{\"model\":\"m\" \n}\n");
  EXPECT_EQ(edited(R"({"a":1 })", set_model), R"({"a":1,"model":"m" })");
}

TEST(JsonObjectEditor, RemovesNullsButNotWhatWasSet) {
  EXPECT_EQ(edited(R"({"a":null,"content":null,"b":1,"c":null})",
                   [](JsonObjectEditor& editor) {
                     editor.set("c", "3");
                     editor.remove_nulls("content");
                   }),
            R"({"content":null,"b":1,"c":3})");
}

TEST(JsonObjectEditor, RenamesTheNameAlone) {
  EXPECT_EQ(
      edited(R"({"reasoning" : "x"})",
             [](JsonObjectEditor& editor) { editor.rename("reasoning", "reasoning_content"); }),
      R"({"reasoning_content" : "x"})");
}

TEST(JsonObjectEditor, LeavesEverythingElseByteForByte) {
  const std::string before =
      R"({"zebra":{"mango":1e-7,"apple":9007199254740993,"apple":1.0},"p":"a\/b\u0041","model":)";
  const std::string after = R"(,"e": [ ] })";
  const auto set = [](JsonObjectEditor& editor) { editor.set("model", "\"x\""); };
  EXPECT_EQ(edited(before + "1" + after, set), before + "\"x\"" + after);
}

}  // namespace
}  // namespace werk
