#include "tests/e2e/chat_answer.hpp"

#include <stdexcept>

namespace werk::test {

namespace json = boost::json;

namespace {

std::string text_in(const json::object& object, std::string_view name) {
  const json::value* value = object.if_contains(name);
  return value != nullptr && value->is_string() ? std::string(value->get_string()) : "";
}

const json::object* object_in(const json::object& object, std::string_view name) {
  const json::value* value = object.if_contains(name);
  return value != nullptr ? value->if_object() : nullptr;
}

void take_calls(const json::object& part, ChatAnswer& answer) {
  const json::value* calls = part.if_contains("tool_calls");
  if (calls == nullptr || !calls->is_array()) return;
  std::uint64_t place = 0;
  for (const json::value& item : calls->get_array()) {
    const json::object& fragment = item.as_object();
    const json::value* index = fragment.if_contains("index");
    AnsweredCall& call = answer.calls[index ? index->to_number<std::uint64_t>() : place++];
    if (call.id.empty()) call.id = text_in(fragment, "id");
    const json::object* function = object_in(fragment, "function");
    if (function == nullptr) continue;
    call.name += text_in(*function, "name");
    call.arguments += text_in(*function, "arguments");
  }
}

void take_part(const json::object& part, ChatAnswer& answer) {
  answer.content += text_in(part, "content");
  answer.reasoning += text_in(part, "reasoning_content");
  take_calls(part, answer);
}

void take_chunk(const json::object& chunk, ChatAnswer& answer) {
  if (const json::object* error = object_in(chunk, "error")) answer.error = *error;
  if (const json::object* usage = object_in(chunk, "usage")) answer.usages.push_back(*usage);
  const json::value* choices = chunk.if_contains("choices");
  if (choices == nullptr) return;
  for (const json::value& item : choices->as_array()) {
    const json::object& choice = item.as_object();
    if (choice.at("index").to_number<std::uint64_t>() != 0) continue;
    if (const json::object* delta = object_in(choice, "delta")) take_part(*delta, answer);
    if (const json::object* message = object_in(choice, "message")) take_part(*message, answer);
    if (const std::string why = text_in(choice, "finish_reason"); !why.empty()) {
      answer.finish_reason = why;
    }
  }
}

}  // namespace

ChatAnswer read_stream(std::string_view body) {
  ChatAnswer answer;
  while (!body.empty()) {
    const std::size_t end = body.find("\n\n");
    if (end == std::string_view::npos || !body.starts_with("data: ")) {
      throw std::runtime_error("no event: " + std::string(body.substr(0, 200)));
    }
    const std::string_view data = body.substr(6, end - 6);
    body.remove_prefix(end + 2);
    if (answer.done || !answer.error.empty()) ++answer.events_after_end;
    if (data == "[DONE]") {
      answer.done = true;
      continue;
    }
    json::object chunk = json::parse(data).as_object();
    take_chunk(chunk, answer);
    answer.chunks.push_back(std::move(chunk));
  }
  return answer;
}

ChatAnswer read_whole(std::string_view body) {
  ChatAnswer answer;
  json::object whole = json::parse(body).as_object();
  take_chunk(whole, answer);
  answer.chunks.push_back(std::move(whole));
  return answer;
}

std::string error_text(const ChatAnswer& answer, std::string_view member) {
  return text_in(answer.error, member);
}

}  // namespace werk::test
