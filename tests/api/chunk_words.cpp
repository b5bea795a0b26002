#include "tests/api/chunk_words.hpp"

#include <fmt/format.h>

#include "werk/base/text.hpp"

namespace werk::test {
namespace {

std::string_view take_word(std::string_view& text) {
  const std::size_t end = std::min(text.find(' '), text.size());
  const std::string_view word = text.substr(0, end);
  text = trim(text.substr(end));
  return word;
}

std::string chunk(std::string_view choices, std::string_view model_json, std::string_view more) {
  return fmt::format(R"({{"choices":[{}],"created":1700000000,"id":"chatcmpl-engine","model":{},)"
                     R"("system_fingerprint":"b1-1","object":"chat.completion.chunk"{}}})",
                     choices, model_json, more);
}

std::string choice(std::string_view index, std::string_view reason, std::string_view delta) {
  return fmt::format(R"({{"finish_reason":{},"index":{},"delta":{}}})", reason, index, delta);
}

}  // namespace

std::string chunk_data(std::string_view line, std::string_view model_json) {
  std::string_view rest = trim(line);
  std::string_view index = "0";
  if (rest.starts_with('#')) index = take_word(rest).substr(1);
  const std::string_view word = take_word(rest);
  const std::string role = choice(index, "null", R"({"role":"assistant","content":null})");
  const auto with = [&](std::string_view delta) {
    return chunk(choice(index, "null", delta), model_json, "");
  };
  if (word == "done") return "[DONE]";
  if (word == "role") return chunk(role, model_json, "");
  if (word == "text") return with(fmt::format(R"({{"content":{}}})", rest));
  if (word == "reasoning") return with(fmt::format(R"({{"reasoning_content":{}}})", rest));
  if (word == "delta") return with(rest);
  if (word == "choice") return chunk(rest, model_json, "");
  if (word == "finish") {
    const std::string reason = fmt::format("\"{}\"", rest);
    return chunk(choice(index, reason, "{}"), model_json, "");
  }
  if (word == "usage") {
    const std::uint64_t prompt = std::stoull(std::string(take_word(rest)));
    const std::uint64_t completion = std::stoull(std::string(take_word(rest)));
    const std::string usage =
        fmt::format(R"(,"usage":{{"completion_tokens":{},"prompt_tokens":{},"total_tokens":{},)"
                    R"("prompt_tokens_details":{{"cached_tokens":{}}}}})",
                    completion, prompt, prompt + completion, rest.empty() ? "0" : rest);
    return chunk("", model_json, usage);
  }
  if (word == "progress") {
    const std::string_view total = take_word(rest);
    const std::string_view processed = take_word(rest);
    const std::string progress =
        fmt::format(R"(,"prompt_progress":{{"total":{},"cache":{},"processed":{},"time_ms":0}})",
                    total, rest.empty() ? "0" : rest, processed);
    return chunk(role, model_json, progress);
  }
  return std::string(line);
}

std::string take_event_name(std::string_view& line) {
  constexpr std::string_view kNamed = "<event ";
  if (!line.starts_with(kNamed)) return {};
  const std::size_t end = line.find('>');
  std::string name = fmt::format("event: {}\n", line.substr(kNamed.size(), end - kNamed.size()));
  line.remove_prefix(end + 1);
  return name;
}

}  // namespace werk::test
