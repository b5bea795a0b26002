#include "werk/engine/worker/messages.hpp"

#include <gtest/gtest.h>

#include "werk/engine/worker/frames.hpp"

namespace werk::engine::worker {
namespace {

template <class Message>
Message read(std::string_view text) {
  auto message = read_message(text);
  EXPECT_TRUE(message.has_value()) << (message ? "" : message.error().message);
  return message ? std::get<Message>(*message) : Message{};
}

std::string complaint(std::string_view text) {
  const auto message = read_message(text);
  return message ? "none" : message.error().message;
}

TEST(WorkerMessages, AreReadWithTheirMembers) {
  const auto hello = read<Hello>(
      R"({"type":"hello","protocol":1,"engine":"e","engine_version":"0.1","can":["seed"],"x":0})");
  EXPECT_EQ(hello.protocol, 1u);
  EXPECT_EQ(hello.can, std::vector<std::string>{"seed"});
  EXPECT_FALSE(read<Progress>(R"({"type":"progress","id":1,"what":"w","fraction":null})").fraction);
  const auto loaded =
      read<Loaded>(R"({"type":"loaded","id":2,"context":8192,"template":{"tools":true}})");
  EXPECT_TRUE(loaded.takes_tools);
  EXPECT_TRUE(loaded.takes_later_system);
  EXPECT_EQ(read<TokenEvent>(R"({"type":"token","id":3,"text":"é"})").bytes, "é");
  EXPECT_EQ(read<TokenEvent>(R"({"type":"token","id":3,"bytes":"wyk=","tokens":2})").tokens, 2u);
  const auto finished = read<GenerationFinished>(
      R"({"type":"finished","id":3,"reason":"context","prompt_tokens":7,"cached_tokens":0,)"
      R"("completion_tokens":9})");
  EXPECT_EQ(finished.reason, EndReason::context);
  EXPECT_EQ(finished.usage.completion_tokens, 9u);
}

TEST(WorkerMessages, TellAnOverflowWithItsNumbers) {
  const auto failed =
      read<Failed>(R"({"type":"failed","id":3,"code":"context_length_exceeded","message":"long",)"
                   R"("prompt_tokens":9000,"context":8192})");
  EXPECT_EQ(failed.error.code, ErrorCode::context_length_exceeded);
  EXPECT_EQ(failed.error.overflow->prompt_tokens, 9000u);
}

TEST(WorkerMessages, AreRefusedWithTheRuleThatTheyBreak) {
  EXPECT_EQ(complaint("[]"), "the worker broke its protocol: a frame holds no object");
  EXPECT_EQ(complaint(R"({"id":1})"), "the worker broke its protocol: a message has no type");
  EXPECT_EQ(complaint(R"({"type":"hallo"})"),
            "the worker broke its protocol: there is no message \"hallo\"");
  EXPECT_EQ(complaint(R"({"type":"counted","id":1,"tokens":-1})"),
            "the worker broke its protocol: \"tokens\" of counted is not a whole number from 0");
  EXPECT_EQ(complaint(R"({"type":"token","id":1})"),
            "the worker broke its protocol: \"text\" of token is not there, or else \"bytes\"");
  EXPECT_EQ(complaint(R"({"type":"token","id":1,"bytes":"*"})"),
            "the worker broke its protocol: \"bytes\" of token is not base64");
  EXPECT_NE(complaint("{\"type\":\"token\",\"id\":1,\"text\":\"\xFF\"}"), "none");
  EXPECT_NE(complaint(std::string(200, '[')), "none");
}

TEST(WorkerFrames, AreCutWhereverTheirBytesAre) {
  const std::string stream = frame_of("one") + frame_of("") + frame_of(std::string(300, 'x'));
  for (std::size_t step = 1; step <= stream.size(); ++step) {
    FrameReader reader(kFromWorkerBytesMax);
    std::vector<std::string> texts;
    for (std::size_t at = 0; at < stream.size(); at += step) {
      reader.feed(std::string_view(stream).substr(at, step));
      while (true) {
        const auto frame = reader.next();
        ASSERT_TRUE(frame.has_value());
        if (!*frame) break;
        texts.emplace_back(**frame);
      }
    }
    EXPECT_EQ(texts, (std::vector<std::string>{"one", "", std::string(300, 'x')}));
    EXPECT_TRUE(reader.at_boundary());
  }
}

TEST(WorkerFrames, ThatAreTooLongAreRefusedBeforeTheyAreKept) {
  FrameReader reader(10);
  reader.feed(std::string("\0\0\0\x0B", 4));
  const auto frame = reader.next();
  ASSERT_FALSE(frame.has_value());
  EXPECT_EQ(frame.error().message, "the worker sent a frame of 11 bytes; 10 are allowed");
}

}  // namespace
}  // namespace werk::engine::worker
