#include "tests/api/message_words.hpp"

#include <fmt/format.h>

#include <utility>

#include "tests/api/exchange_file.hpp"
#include "werk/base/text.hpp"

namespace werk::test {
namespace {

std::string_view take_word(std::string_view& text) {
  const std::size_t end = std::min(text.find(' '), text.size());
  const std::string_view word = text.substr(0, end);
  text = trim(text.substr(end));
  return word;
}

std::string event(std::string_view type, std::string_view members) {
  return fmt::format("event: {0}\ndata: {{\"type\":\"{0}\"{1}{2}}}\n\n", type,
                     members.empty() ? "" : ",", members);
}

std::string usage(std::string_view input, std::string_view cached, std::string_view output) {
  return fmt::format(R"("usage":{{"input_tokens":{},"cache_creation_input_tokens":0,)"
                     R"("cache_read_input_tokens":{},"output_tokens":{}}})",
                     input, cached, output);
}

std::string start(std::string_view numbers, std::string_view model_json) {
  const std::string_view input = take_word(numbers);
  const std::string message =
      fmt::format(R"("message":{{"id":"msg_<id>","type":"message","role":"assistant","model":{},)"
                  R"("content":[],"stop_reason":null,"stop_sequence":null,{}}})",
                  model_json, usage(input, numbers, "0"));
  return event("message_start", message);
}

std::string open(int index, std::string_view rest) {
  const std::string_view kind = take_word(rest);
  std::string block = R"("text":"")";
  if (kind == "thinking") block = R"("thinking":"","signature":"")";
  if (kind == "tool_use") {
    const std::string_view id = take_word(rest);
    block = fmt::format(R"("id":{},"name":{},"input":{{}})", id, rest);
  }
  return event("content_block_start",
               fmt::format(R"("index":{},"content_block":{{"type":"{}",{}}})", index, kind, block));
}

std::string delta(int index, std::string_view type, std::string_view member,
                  std::string_view json) {
  return event("content_block_delta", fmt::format(R"("index":{},"delta":{{"type":"{}","{}":{}}})",
                                                  index, type, member, json));
}

std::string end(std::string_view rest) {
  const std::string_view reason = take_word(rest);
  const std::string_view input = take_word(rest);
  const std::string_view cached = take_word(rest);
  const std::string_view output = take_word(rest);
  return event("message_delta",
               fmt::format(R"("delta":{{"stop_reason":"{}","stop_sequence":{}}},{})", reason,
                           rest.empty() ? "null" : rest, usage(input, cached, output)));
}

std::string error(std::string_view rest) {
  const std::string_view type = take_word(rest);
  return event("error", fmt::format(R"("error":{{"type":"{}","message":{}}},"request_id":"<id>")",
                                    type, rest));
}

// One line; `index` counts the blocks that were opened and closed.
std::string event_of(std::string_view line, std::string_view model_json, int& index) {
  std::string_view rest = trim(line);
  const std::string_view word = take_word(rest);
  if (word == "start") return start(rest, model_json);
  if (word == "open") return open(index, rest);
  if (word == "text") return delta(index, "text_delta", "text", rest);
  if (word == "thinking") return delta(index, "thinking_delta", "thinking", rest);
  if (word == "arguments") return delta(index, "input_json_delta", "partial_json", rest);
  if (word == "signature") return delta(index, "signature_delta", "signature", "\"<any>\"");
  if (word == "close")
    return event("content_block_stop",
                 fmt::format(R"("index":{})", std::exchange(index, index + 1)));
  if (word == "end") return end(rest);
  if (word == "stop") return event("message_stop", "");
  if (word == "ping") return event("ping", "");
  if (word == "error") return error(rest);
  return std::string(line) + "\n\n";
}

}  // namespace

MessageEvents message_events(std::string_view lines, std::string_view model_json) {
  MessageEvents events;
  int index = 0;
  for (const std::string_view line : lines_of(lines)) {
    if (line == "<cut>") {
      events.cut = true;
    } else if (!trim(line).empty()) {
      events.bytes += expanded(event_of(line, model_json, index));
    }
  }
  return events;
}

std::vector<std::string> sent_message_events(std::string_view lines, std::string_view model_json) {
  std::string bytes = message_events(lines, model_json).bytes;
  for (const std::string_view any : {"<id>", "<any>"}) {
    for (std::size_t at = bytes.find(any); at != std::string::npos; at = bytes.find(any))
      bytes.replace(at, any.size(), "1");
  }
  std::vector<std::string> events;
  for (std::size_t at = 0; at < bytes.size(); at += events.back().size())
    events.push_back(bytes.substr(at, bytes.find("\n\n", at) + 2 - at));
  return events;
}

}  // namespace werk::test
