#include "werk/http/sse.hpp"

#include <gtest/gtest.h>

#include <functional>
#include <vector>

namespace werk::http {
namespace {

struct Seen {
  std::string name;
  std::string data;
  bool comment = false;
  bool operator==(const Seen&) const = default;
};

void PrintTo(const Seen& seen, std::ostream* out) {
  *out << (seen.comment ? "comment " : "event ") << seen.name << " [" << seen.data << "]";
}

Seen event(std::string data, std::string name = "") {
  return Seen{std::move(name), std::move(data)};
}
Seen comment(std::string text) { return Seen{"", std::move(text), true}; }

// Everything that comes out when `stream` is fed in pieces of these sizes (the last piece takes the
// rest).
std::vector<Seen> read(std::string_view stream, const std::vector<std::size_t>& cuts) {
  SseParser parser;
  std::vector<Seen> seen;
  const auto note = [&](const SseItem& item) {
    seen.push_back(
        {std::string(item.name), std::string(item.data), item.kind == SseItem::Kind::comment});
  };
  std::size_t from = 0;
  const auto feed = [&](std::size_t to) {
    // A copy of its own, so that a view kept too long is a fault the address sanitizer sees.
    const std::string piece(stream.substr(from, to - from));
    parser.feed(piece);
    from = to;
    for (;;) {
      const auto item = parser.next();
      EXPECT_TRUE(item);
      if (!item || !*item) break;
      note(**item);
    }
    parser.feed({});
  };
  for (const std::size_t cut : cuts) feed(cut);
  feed(stream.size());
  const auto last = parser.finish();
  EXPECT_TRUE(last);
  if (last && *last) note(**last);
  return seen;
}

void expect_at_every_split(std::string_view stream, const std::vector<Seen>& expected) {
  EXPECT_EQ(read(stream, {}), expected);
  for (std::size_t i = 0; i <= stream.size(); ++i) {
    EXPECT_EQ(read(stream, {i}), expected) << "split at " << i;
    for (std::size_t j = i; j <= stream.size(); j += 3) EXPECT_EQ(read(stream, {i, j}), expected);
  }
  std::vector<std::size_t> bytes;
  for (std::size_t i = 0; i < stream.size(); ++i) bytes.push_back(i);
  EXPECT_EQ(read(stream, bytes), expected) << "byte by byte";
}

TEST(SseParser, AcceptsEveryKindOfLineEndAtEverySplit) {
  for (const std::string end : {"\n", "\r\n", "\r"}) {
    const std::string stream = "data: one" + end + end + "data: two" + end + end;
    expect_at_every_split(stream, {event("one"), event("two")});
  }
  expect_at_every_split("data: one\r\n\ndata: two\r\rdata: three\n\r\n\r\n",
                        {event("one"), event("two"), event("three")});
}

TEST(SseParser, JoinsDataOfSeveralLines) {
  expect_at_every_split("data: {\"a\":\r\ndata:1}\r\n\r\n", {event("{\"a\":\n1}")});
  expect_at_every_split("data\ndata: x\n\n", {event("\nx")});
}

TEST(SseParser, TakesAwayAtMostOneSpaceAfterTheColon) {
  expect_at_every_split("data:x\n\ndata:  y\n\n", {event("x"), event(" y")});
}

TEST(SseParser, CommentsAreNeverDataNorAnEnd) {
  expect_at_every_split(
      ": hello\n\n:\ndata: a\n: inside\ndata: b\n\n:end\n",
      {comment("hello"), comment(""), comment("inside"), event("a\nb"), comment("end")});
}

TEST(SseParser, TellsTheNameOfTheEventOnly) {
  expect_at_every_split("event: error\ndata: x\n\ndata: y\n\nevent: lost\n\ndata: z\n\n",
                        {event("x", "error"), event("y"), event("z")});
}

TEST(SseParser, IgnoresAMarkAtTheStartOnly) {
  expect_at_every_split(
      "\xEF\xBB\xBF"
      "data: x\n\n\xEF\xBB\xBF"
      "data: y\n\n",
      {event("x")});
}

TEST(SseParser, IgnoresFieldsItDoesNotKnow) {
  expect_at_every_split("id: 7\nretry: 10\ndatax: no\ndata: yes\nfoo\n\n", {event("yes")});
}

TEST(SseParser, KeepsBytesOfCharactersThatWereCut) {
  expect_at_every_split("data: \xE4\xBD\xA0\xF0\x9F\x98\x80\n\n",
                        {event("\xE4\xBD\xA0\xF0\x9F\x98\x80")});
}

TEST(SseParser, YieldsTheLastEventWhoseBlankLineNeverCame) {
  expect_at_every_split("data: a\n\ndata: [DONE]", {event("a"), event("[DONE]")});
  expect_at_every_split("data: a\n\ndata: [DONE]\r\n", {event("a"), event("[DONE]")});
  expect_at_every_split("data: a\n\ndata:", {event("a")});
}

TEST(SseParser, DropsEventsWithoutData) {
  expect_at_every_split("data:\n\ndata: \n\n\n\nid: 1\n\n", {});
}

TEST(SseParser, AnEventInOnePieceIsAViewIntoItWithItsRawBytes) {
  SseParser parser;
  const std::string piece = ": c\n\nid: 3\ndata: abc\r\n\r\ndata: d";
  parser.feed(piece);
  ASSERT_EQ((*parser.next())->kind, SseItem::Kind::comment);
  const auto item = *parser.next();
  ASSERT_TRUE(item);
  EXPECT_EQ(item->data, "abc");
  EXPECT_GE(item->data.data(), piece.data());
  EXPECT_LT(item->data.data(), piece.data() + piece.size());
  EXPECT_EQ(item->raw, "id: 3\ndata: abc\r\n\r\n");
  EXPECT_FALSE(*parser.next());
  parser.feed("ef\n\n");
  const auto split = *parser.next();
  EXPECT_EQ(split->data, "def");
  EXPECT_TRUE(split->raw.empty());
}

TEST(SseParser, AnEndlessLineEndsAtTheLimitWithAnError) {
  SseParser parser(std::size_t{1} << 20);
  const std::string piece(64 << 10, 'x');
  std::size_t fed = 0;
  bool failed = false;
  while (!failed && fed < (std::size_t{256} << 20)) {
    parser.feed(piece);
    fed += piece.size();
    const auto item = parser.next();
    failed = !item;
    if (failed) {
      EXPECT_EQ(item.error().code, ErrorCode::engine_failed);
    }
  }
  EXPECT_TRUE(failed);
  EXPECT_LE(fed, (std::size_t{1} << 20) + 2 * piece.size());
  EXPECT_FALSE(parser.next()) << "a failed parser stays failed";
  EXPECT_FALSE(parser.finish());
}

TEST(SseParser, EndlessDataLinesEndAtTheLimitToo) {
  SseParser parser(1000);
  const std::string line = "data: 0123456789\n";
  int lines = 0;
  for (;; ++lines) {
    parser.feed(line);
    if (!parser.next()) break;
    ASSERT_LT(lines, 200);
  }
  EXPECT_GT(lines, 80);
}

TEST(SseParser, AnEventJustUnderTheLimitPassesWhole) {
  const std::string data(std::size_t{4} << 20, 'y');
  SseParser parser;
  const std::string stream = "data: " + data + "\n\n";
  std::size_t found = 0;
  for (std::size_t at = 0; at < stream.size(); at += 65536) {
    const std::string piece = stream.substr(at, 65536);
    parser.feed(piece);
    const auto item = parser.next();
    ASSERT_TRUE(item);
    if (*item) {
      ++found;
      EXPECT_EQ((*item)->data, data);
      EXPECT_FALSE(*parser.next());
    }
  }
  EXPECT_EQ(found, 1u);
}

TEST(SseWriter, IsReadBackByTheParser) {
  std::string out;
  append_sse_data(out, "{\"a\":1}");
  append_sse_event(out, "error", "line one\nline two\r\nline three");
  append_sse_comment(out, "alive\nstill");
  EXPECT_EQ(out,
            "data: {\"a\":1}\n\nevent: error\ndata: line one\ndata: line two\ndata: line "
            "three\n\n: alive still\n\n");
  expect_at_every_split(out, {event("{\"a\":1}"), event("line one\nline two\nline three", "error"),
                              comment("alive still")});
}

}  // namespace
}  // namespace werk::http
