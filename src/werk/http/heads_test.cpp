#include "werk/http/heads.hpp"

#include <gtest/gtest.h>

namespace werk::http {
namespace {

TEST(Heads, AnAnswersFramingIsTheServersAlone) {
  ResponseHead head;
  head.status = 429;
  head.headers.add("Retry-After", "3");
  head.headers.add("content-length", "999");
  head.headers.add("Transfer-Encoding", "chunked");
  head.headers.add("Connection", "keep-alive");
  head.headers.add("DATE", "yesterday");
  AnswerFrame frame;
  frame.length = 12;
  frame.persistence = Persistence::close;
  frame.date = "today";
  std::string out;
  append_response_head(out, head, frame);
  EXPECT_EQ(out,
            "HTTP/1.1 429 Too Many Requests\r\nDate: today\r\nRetry-After: 3\r\n"
            "Content-Length: 12\r\nConnection: close\r\n\r\n");
}

TEST(Heads, AValueCannotEndItsLine) {
  ResponseHead head;
  head.headers.add("X-Model", std::string("a\r\nSet-Cookie: b\0c", 18));
  head.headers.add("X Y:\r\n", "d");
  head.headers.add("", "e");
  AnswerFrame frame;
  frame.framing = Framing::none;
  frame.date = "today";
  std::string out;
  append_response_head(out, head, frame);
  EXPECT_EQ(out,
            "HTTP/1.1 200 OK\r\nDate: today\r\nX-Model: a  Set-Cookie: b c\r\n"
            "X-Y---: d\r\nX-Unnamed: e\r\n\r\n");
}

TEST(Heads, AChunkHeadIsItsSizeInHexadecimal) {
  EXPECT_EQ(ChunkHead(0).view(), "0\r\n");
  EXPECT_EQ(ChunkHead(10).view(), "a\r\n");
  EXPECT_EQ(ChunkHead(0x1F00).view(), "1f00\r\n");
  EXPECT_EQ(ChunkHead(SIZE_MAX).view(), "ffffffffffffffff\r\n");
}

TEST(Heads, ADateIsWrittenAsHttpWantsIt) {
  DateText date;
  EXPECT_EQ(date.at(784111777), "Sun, 06 Nov 1994 08:49:37 GMT");
  EXPECT_EQ(date.at(784111778), "Sun, 06 Nov 1994 08:49:38 GMT");
}

TEST(Heads, AnErrorBodyIsJsonWhateverTheMessage) {
  EXPECT_EQ(default_error_body(400, "a \"b\" \\ \n"),
            R"({"error":{"message":"a \"b\" \\  ","type":"invalid_request_error",)"
            R"("param":null,"code":null}})");
}

TEST(HeadersTest, NamesAreFoundInAnyCase) {
  Headers headers;
  headers.add("Content-Type", "a");
  headers.add("content-type", "b");
  EXPECT_EQ(headers.find("CONTENT-TYPE"), "a");
  EXPECT_EQ(headers.count("Content-type"), 2u);
  headers.set("CoNtEnT-TyPe", "c");
  EXPECT_EQ(headers.count("content-type"), 1u);
  EXPECT_EQ(headers.find("content-type"), "c");
  EXPECT_FALSE(headers.find("content"));
  headers.remove("content-type");
  EXPECT_TRUE(headers.empty());
}

}  // namespace
}  // namespace werk::http
