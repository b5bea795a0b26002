// The short words for events of a Messages stream in .exchange files (`start 9 3`, `open text`);
// README.md lists them. Written apart from the product's own writer, so that both must agree. Pure.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace werk::test {

struct MessageEvents {
  std::string bytes;
  bool cut = false;  // the last line says that the stream ends without its end
};

// `model_json` is the model's name as the client wrote it, a JSON string. Lines that are no word
// stand for themselves.
MessageEvents message_events(std::string_view lines, std::string_view model_json);

// The same as a server sends them, one by one: what stands for anything stands for one thing.
std::vector<std::string> sent_message_events(std::string_view lines, std::string_view model_json);

}  // namespace werk::test
