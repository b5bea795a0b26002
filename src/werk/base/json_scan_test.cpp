#include "werk/base/json_scan.hpp"

#include <gtest/gtest.h>

#include <array>

#include "werk/base/json_cursor.hpp"

namespace werk {
namespace {

constexpr std::array<std::string_view, 2> kUnique = {"model", "stream"};

// What scanning says, whole or in pieces, as text: "ok", or the error's message.
std::string scan(std::string_view text, const std::vector<std::size_t>& cuts = {}) {
  JsonScanner scanner({}, kUnique);
  std::size_t from = 0;
  for (std::size_t i = 0; i <= cuts.size(); ++i) {
    const std::size_t to = i < cuts.size() ? cuts[i] : text.size();
    const std::string piece(text.substr(from, to - from));
    if (const Status status = scanner.feed(piece); !status) return status.error().message;
    from = to;
  }
  if (const Status status = scanner.finish(); !status) return status.error().message;
  std::string seen = "ok";
  for (const JsonMember& member : scanner.members()) {
    EXPECT_EQ(member.name.in(text).front(), '"');
    seen += " " + member.key + "=" + std::string(member.value.in(text));
    EXPECT_EQ(member.kind, json_kind(member.value.in(text)));
  }
  return seen;
}

void expect_at_every_split(std::string_view text, std::string_view expected) {
  EXPECT_EQ(scan(text), expected) << text;
  for (std::size_t i = 0; i <= text.size(); ++i)
    EXPECT_EQ(scan(text, {i}), expected) << text << " split at " << i;
  std::vector<std::size_t> bytes;
  for (std::size_t i = 1; i < text.size(); ++i) bytes.push_back(i);
  EXPECT_EQ(scan(text, bytes), expected) << text << " byte by byte";
}

TEST(JsonScanner, FindsTheMembersOfTheTopLevelAtEverySplit) {
  expect_at_every_split(R"({"model":"a","n":2})", R"(ok model="a" n=2)");
  expect_at_every_split(
      " { \"a\" : [ {\"model\":1} , {} ] ,\r\n\t\"b\":{\"model\":{}, \"model\":2}, \"c\": true } ",
      "ok a=[ {\"model\":1} , {} ] b={\"model\":{}, \"model\":2} c=true");
  expect_at_every_split(
      R"({"zebra":1.0,"apple":9007199254740993,"mango":1e-7,"x":-0.5E+10,"y":null,"z":false})",
      R"(ok zebra=1.0 apple=9007199254740993 mango=1e-7 x=-0.5E+10 y=null z=false)");
  expect_at_every_split(R"({})", "ok");
  expect_at_every_split(R"([1,"model",[]])", "ok");
  expect_at_every_split(" 0 ", "ok");
  expect_at_every_split("-12.5e3", "ok");
}

TEST(JsonScanner, DecodesEscapedNames) {
  expect_at_every_split(R"({"mod\u0065l":1,"a\/b":2,"\ud83d\ude00":3,"\ud800":4})",
                        "ok model=1 a/b=2 \xF0\x9F\x98\x80=3 \xEF\xBF\xBD=4");
  expect_at_every_split("{\"\xE4\xBD\xA0\":\"\xF0\x9F\x98\x80\xC3\xA9 and plain ascii again\"}",
                        "ok \xE4\xBD\xA0=\"\xF0\x9F\x98\x80\xC3\xA9 and plain ascii again\"");
}

TEST(JsonScanner, ADuplicateIsAnErrorOnlyOnTheWatchList) {
  expect_at_every_split(R"({"a":1,"a":2})", "ok a=1 a=2");
  expect_at_every_split(R"({"model":1,"model":2})", "the member 'model' is given twice");
  expect_at_every_split(R"({"model":1,"mod\u0065l":2})", "the member 'model' is given twice");
  JsonScanner scanner({}, kUnique);
  const Status status = scanner.feed(R"({"stream":1,"stream":)");
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().param, "stream");
  EXPECT_EQ(status.error().code, ErrorCode::invalid_request);
  EXPECT_EQ(status.error().origin, Origin::client);
}

TEST(JsonScanner, SaysWhereAndWhatWasExpected) {
  expect_at_every_split("{\"a\":1,}", "not valid JSON: at byte 7 a name in quotes was expected");
  expect_at_every_split("{\"a\" 1}", "not valid JSON: at byte 5 ':' was expected");
  expect_at_every_split("{a:1}", "not valid JSON: at byte 1 a name in quotes or '}' was expected");
  expect_at_every_split("[1 2]", "not valid JSON: at byte 3 ',' or ']' was expected");
  expect_at_every_split("[1,]", "not valid JSON: at byte 3 a value was expected");
  expect_at_every_split("[1}", "not valid JSON: at byte 2 ',' or ']' was expected");
  expect_at_every_split("{\"a\":1]", "not valid JSON: at byte 6 ',' or '}' was expected");
  expect_at_every_split("hello", "not valid JSON: at byte 0 a JSON value was expected");
  expect_at_every_split("{} x", "not valid JSON: at byte 3 nothing more was expected");
  expect_at_every_split("{}{}", "not valid JSON: at byte 2 nothing more was expected");
  expect_at_every_split("[nul]", "not valid JSON: at byte 4 null was expected");
  expect_at_every_split("[\"a\nb\"]",
                        "not valid JSON: at byte 3 a control character to be escaped was expected");
  expect_at_every_split("", "the text is empty where JSON was expected");
  expect_at_every_split("  ", "the text is empty where JSON was expected");
  expect_at_every_split("{\"a\":",
                        "the JSON ends too early, at byte 5, where a value was expected");
  expect_at_every_split(
      "{\"a", "the JSON ends too early, at byte 3, where the end of a string was expected");
  expect_at_every_split("[1", "the JSON ends too early, at byte 2, where ',' or ']' was expected");
}

TEST(JsonScanner, RefusesNumbersThatAreNotJson) {
  for (const std::string_view bad :
       {"01", "-", "+1", ".5", "1.", "1.e3", "1e", "1e+", "--1", "0x10", "1.2.3", "1e2.5", "NaN",
        "Infinity", "-Infinity", "1_000"}) {
    const std::string whole = "[" + std::string(bad) + "]";
    EXPECT_NE(scan(whole).substr(0, 2), "ok") << bad;
    EXPECT_NE(scan(bad).substr(0, 2), "ok") << bad;
  }
  for (const std::string_view good :
       {"0", "-0", "0.0", "1e5", "1E-05", "123456789012345678901234567890", "0e0"}) {
    EXPECT_EQ(scan(good), "ok") << good;
    EXPECT_EQ(scan("[" + std::string(good) + "]"), "ok") << good;
  }
}

TEST(JsonScanner, RefusesBytesThatAreNotUtf8) {
  for (const std::string_view bad :
       {"\x80", "\xC0\x80", "\xC1\xBF", "\xE0\x80\x80", "\xED\xA0\x80", "\xF0\x80\x80\x80",
        "\xF4\x90\x80\x80", "\xF5\x80\x80\x80", "\xFF", "\xE4\xBD",
        "\xE4\xBD"
        "a",
        "\xC3\x28", "\xF0\x9F\x98"}) {
    const std::string value = "[\"0123456789" + std::string(bad) + "\"]";
    const std::string name = "{\"" + std::string(bad) + "\":1}";
    const std::string outside = std::string(bad);
    EXPECT_NE(scan(value).find("valid UTF-8"), std::string::npos) << scan(value);
    EXPECT_NE(scan(name).find("valid UTF-8"), std::string::npos);
    EXPECT_NE(scan(outside).substr(0, 2), "ok");
  }
}

TEST(JsonScanner, LetsLoneSurrogatesInEscapesThrough) {
  expect_at_every_split(R"({"a":"\ud83d\ude00\ud800\udc00x\ude00"})",
                        R"(ok a="\ud83d\ude00\ud800\udc00x\ude00")");
  EXPECT_NE(scan(R"(["\u12g4"])").substr(0, 2), "ok");
  EXPECT_NE(scan(R"(["\x"])").substr(0, 2), "ok");
}

TEST(JsonScanner, StopsAtTheLimitOfNesting) {
  const auto nested = [](std::size_t depth) {
    return std::string(depth, '[') + std::string(depth, ']');
  };
  EXPECT_EQ(scan(nested(256)), "ok");
  EXPECT_EQ(scan(nested(257)), "the JSON is nested more than 256 levels deep, at byte 256");
  EXPECT_EQ(scan(nested(10'000)), "the JSON is nested more than 256 levels deep, at byte 256");
  std::string objects;
  for (int i = 0; i < 10'000; ++i) objects += "{\"a\":";
  EXPECT_NE(scan(objects).find("nested more than"), std::string::npos);
}

TEST(JsonScanner, BoundsWhatItKeeps) {
  JsonScanner scanner(JsonScanLimits{.members_max = 3});
  EXPECT_TRUE(scanner.feed(R"({"a":1,"b":1,"c":1)"));
  EXPECT_FALSE(scanner.feed(R"(,"d":1})"));
  EXPECT_FALSE(scanner.finish()) << "a failed scanner stays failed";

  const std::string name(100'000, 'k');
  JsonScanner keys;
  ASSERT_TRUE(keys.feed("{\"" + name + "\":1}"));
  ASSERT_TRUE(keys.finish());
  ASSERT_EQ(keys.members().size(), 1u);
  EXPECT_FALSE(keys.members()[0].key_kept);
  EXPECT_TRUE(keys.members()[0].key.empty());
  EXPECT_EQ(keys.members()[0].name.size(), name.size() + 2);
}

TEST(JsonScanner, CanBeUsedAgain) {
  JsonScanner scanner({}, kUnique);
  EXPECT_FALSE(scanner.feed(R"({"model":1,"model")"));
  scanner.reset();
  ASSERT_TRUE(scanner.feed(R"({"model":1})"));
  ASSERT_TRUE(scanner.finish());
  EXPECT_EQ(scanner.members().size(), 1u);
  EXPECT_EQ(scanner.root(), JsonKind::object);
  EXPECT_EQ(scanner.bytes(), 11u);
}

TEST(JsonCursor, WalksObjectsAndArraysInPlace) {
  const std::string_view text =
      R"( {"a" : 1 , "b\"" : "x\\" ,"c":[ {} , "]" , [1,2] ], "d" :null} )";
  JsonObjectCursor members(trim_json(text));
  std::vector<std::string> seen;
  while (const auto member = members.next())
    seen.push_back(std::string(member->name) + "=" + std::string(member->value));
  EXPECT_EQ(seen, (std::vector<std::string>{"a=1", "b\\\"=\"x\\\\\"", "c=[ {} , \"]\" , [1,2] ]",
                                            "d=null"}));
  JsonArrayCursor elements(*find_member(trim_json(text), "c"));
  std::vector<std::string> parts;
  while (const auto element = elements.next()) parts.emplace_back(*element);
  EXPECT_EQ(parts, (std::vector<std::string>{"{}", "\"]\"", "[1,2]"}));
  EXPECT_FALSE(find_member("[1]", "a"));
  EXPECT_TRUE(find_member(R"({"\u0061":7})", "a"));
}

// Strings are searched by words of eight bytes and, where they are long, by memchr.
TEST(JsonCursor, FindsTheEndOfStringsOfAnyLengthWithEscapesAtAnyPlace) {
  for (std::size_t length = 0; length < 48; ++length) {
    for (std::size_t at = 0; at <= length; ++at) {
      for (const std::string_view escape :
           {"", R"(\")", R"(\\)", R"(\\\")", "\xC3\xA9", "\x7F", "!#[]"}) {
        std::string text(length, 'x');
        text.insert(at, escape);
        const std::string value = '"' + text + '"';
        const std::string object = R"({"a":)" + value + R"(,"b":"c"})";
        EXPECT_EQ(find_member(object, "a"), value);
        EXPECT_EQ(find_member(object, "b"), R"("c")");
        // Nothing behind a cut is read.
        const std::vector<char> cut(object.begin(), object.begin() + 7 + static_cast<long>(at));
        EXPECT_FALSE(find_member({cut.data(), cut.size()}, "b"));
      }
    }
  }
}

TEST(JsonCursor, AlwaysEndsOnTextThatIsNotJson) {
  for (const std::string_view bad :
       {"{", "{\"", "{\"a", "{\"a\"", "{\"a\":", "{\"a\":}", "{\"a\":,", "[", "[,", "[\"", "[[[",
        "[}", "{]", "[1,,", "\"", "\\", "{\"a\":\"\\", "[:", "{\"a\":1 2 3"}) {
    int steps = 0;
    JsonObjectCursor members(bad);
    while (members.next()) ASSERT_LT(++steps, 100) << bad;
    JsonArrayCursor elements(bad);
    while (elements.next()) ASSERT_LT(++steps, 100) << bad;
  }
}

TEST(JsonStrings, AreReadBackAsTheyWereWritten) {
  std::string every;
  for (int c = 0; c < 128; ++c) every.push_back(static_cast<char>(c));
  every += "\xE4\xBD\xA0\xF0\x9F\x98\x80";
  EXPECT_EQ(json_string(to_json_string(every)), every);
  EXPECT_EQ(scan(to_json_string(every)), "ok");
  EXPECT_EQ(unescape_json(R"(\ud83d\ude00 \ud83d \ude00 \ud83dx \u00e9\n\/)"),
            "\xF0\x9F\x98\x80 \xEF\xBF\xBD \xEF\xBF\xBD \xEF\xBF\xBDx \xC3\xA9\n/");
  EXPECT_FALSE(json_string("12"));
  EXPECT_EQ(json_unsigned("42"), 42u);
  EXPECT_FALSE(json_unsigned("-1"));
  EXPECT_FALSE(json_unsigned("1.0"));
  EXPECT_FALSE(json_unsigned("18446744073709551616"));
}

}  // namespace
}  // namespace werk
