// What a worker is asked to generate, read from the body of an OpenAI chat completion (the form in
// which the gateway hands on every call): messages and tools in the shape that chat templates want,
// sampling, limits. What a worker can't do, and would leave out without a word, is refused and
// named. Pure; any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "werk/base/result.hpp"
#include "werk/engine/worker/messages.hpp"

namespace werk::engine::worker {

struct ChatTask {
  std::string members;  // JSON text of `generate` without type and id: `"messages":[...],...`
  std::string prompt_members;  // those that decide the prompt, as `count` takes them
  std::vector<std::string> stops;
  bool has_tools = false;   // and may call them
  bool tells_stop = false;  // the caller wants the stop string that was met
};

// `body` is whole and was accepted by the gateway's reader. Fails with invalid_request or
// unsupported, origin client, and the member at fault as `param`.
Result<ChatTask> read_chat_task(std::string_view body);

std::string generate_message(RequestId id, const ChatTask& task);
std::string count_message(RequestId id, const ChatTask& task);

}  // namespace werk::engine::worker
