#include "bench/mock_answers.hpp"

#include <fmt/format.h>

#include "bench/support/mock_control.hpp"

namespace werk::bench {
namespace {

void event(MockAnswer& answer, std::string_view data) {
  const std::string text = fmt::format("data: {}\n\n", data);
  answer.bytes += fmt::format("{:x}\r\n{}\r\n", text.size(), text);
}

std::string usage(const MockShape& shape) {
  return fmt::format(
      R"("usage":{{"completion_tokens":{},"prompt_tokens":32,"total_tokens":{},)"
      R"("prompt_tokens_details":{{"cached_tokens":0}}}},"timings":{{"cache_n":0,"prompt_n":32,)"
      R"("prompt_ms":1.5,"predicted_n":{},"predicted_ms":2.5}})",
      shape.tokens, shape.tokens + 32, shape.tokens);
}

}  // namespace

MockAnswers::MockAnswers(std::string_view alias)
    : tail_(fmt::format(R"("created":1795993074,"id":"chatcmpl-9zDp2Sf4kQmVb7TtXc1LwR8uYh3NjEaG",)"
                        R"("model":"{}","system_fingerprint":"b1-de3ff81")",
                        alias)) {}

const MockAnswer& MockAnswers::of(const MockShape& shape) {
  std::unique_ptr<MockAnswer>& answer = known_[shape];
  if (answer == nullptr) {
    answer = std::make_unique<MockAnswer>();
    shape.stream ? make_stream(shape, *answer) : make_whole(shape, *answer);
  }
  return *answer;
}

std::string MockAnswers::chunk(std::string_view delta, std::string_view finish,
                               std::string_view more) const {
  return fmt::format(R"({{"choices":[{{"finish_reason":{},"index":0,"delta":{}}}],{},)"
                     R"("object":"chat.completion.chunk"{}}})",
                     finish, delta, tail_, more);
}

void MockAnswers::make_stream(const MockShape& shape, MockAnswer& answer) const {
  answer.bytes =
      "HTTP/1.1 200 OK\r\nServer: llama.cpp\r\nContent-Type: text/event-stream\r\n"
      "Transfer-Encoding: chunked\r\n\r\n";
  const std::string_view role = R"({"role":"assistant","content":null})";
  if (shape.progress) {
    event(answer, chunk(role, "null",
                        R"(,"prompt_progress":{"total":32,"cache":0,"processed":0,"time_ms":0})"));
  }
  answer.stops.push_back(answer.bytes.size());
  event(answer, chunk(role, "null", ""));
  for (std::uint64_t i = 0; i < shape.tokens; ++i) {
    event(answer, chunk(fmt::format(R"({{"content":"{}"}})", mock_word(i)), "null", ""));
    answer.stops.push_back(answer.bytes.size());
  }
  event(answer, chunk("{}", "\"length\"", shape.usage ? "" : "," + usage(shape)));
  if (shape.usage) {
    event(answer, fmt::format(R"({{"choices":[],{},"object":"chat.completion.chunk",{}}})", tail_,
                              usage(shape)));
  }
  event(answer, "[DONE]");
  answer.bytes += "0\r\n\r\n";
  answer.stops.back() = answer.bytes.size();
}

void MockAnswers::make_whole(const MockShape& shape, MockAnswer& answer) const {
  std::string text;
  for (std::uint64_t i = 0; i < shape.tokens; ++i) text += mock_word(i);
  const std::string body = fmt::format(
      R"({{"choices":[{{"finish_reason":"length","index":0,)"
      R"("message":{{"role":"assistant","content":"{}"}}}}],{},"object":"chat.completion",{}}})",
      text, tail_, usage(shape));
  answer.bytes = fmt::format(
      "HTTP/1.1 200 OK\r\nServer: llama.cpp\r\nContent-Type: application/json; charset=utf-8\r\n"
      "Content-Length: {}\r\n\r\n{}",
      body.size(), body);
  answer.stops = {0, answer.bytes.size()};
}

}  // namespace werk::bench
